"""In which order readers and writers are served, what the dead leave, and how many permits there are."""

import logging
from typing import Any

import pytest

from resourcepool.exceptions import LeaseLost
from resourcepool.leases import verbs
from resourcepool.locks import RWLock
from resourcepool.locks.rwlock_sides import RWPermits
from resourcepool.models import RWLockPermit, Ticket
from tests.app.rows import expire, steal
from tests.eventually import InBackground, elsewhere, eventually
from tests.locks.readwrite import InBackgroundReader, how_many, lock, permits, tried_to_write


class TestOrder:
    @pytest.fixture(autouse=True)
    def _places_in_line_last(self, settings: Any) -> None:
        """However slow the machine is; and they are not renewed meanwhile."""
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "TICKET_TTL": 600}

    def served(self, *names: str, **options: Any) -> list[str]:
        """Return in which order these are served, who came in this order while somebody wrote."""
        order: list[str] = []

        def work(name: str) -> None:
            side = lock(**options).write() if name.startswith("w") else lock(**options).read()
            with side as held:
                order.append(name)
                eventually(lambda: nobody_is_served_just_now(len(held.leases)))

        def nobody_is_served_just_now(mine: int) -> bool:
            """Tell whether all permits have reached those in line: a ticket may be passed over while it gets one."""
            line = Ticket.objects.waiting()
            collected = permits().held().filter(holder__in=line.values("holder")).count()
            return not line.exists() or mine + collected == 3

        with lock(**options).write():
            those = []
            for number, name in enumerate(names):
                those.append(InBackground(work, name))
                eventually(lambda number=number: Ticket.objects.waiting().count() == number + 1)
        for one in those:
            one.result()
        return order

    def test_writers_are_preferred_or_fairly_all_are_served_as_they_came(self) -> None:
        assert self.served("r1", "w1", "r2", "w2")[:2] == ["w1", "w2"]
        assert self.served("r1", "w1", "r2", "w2", fair=True) == ["r1", "w1", "r2", "w2"]

    @pytest.mark.parametrize("fair", [True, False])
    def test_readers_that_come_after_a_writer_wait_for_it(self, fair: bool) -> None:
        order: list[str] = []

        def read() -> None:
            with lock(fair=fair).read():
                order.append("reader")

        def write() -> None:
            with lock(fair=fair).write():
                order.append("writer")

        with lock(fair=fair).read():
            writes = InBackground(write)
            eventually(lambda: permits().held().count() == 3)
            those = [InBackground(read) for _ in range(5)]
            eventually(lambda: Ticket.objects.waiting().count() == 6)
        for one in [writes, *those]:
            one.result()
        assert order == ["writer", *["reader"] * 5]


class TestDeath:
    def test_what_a_dead_reader_had_comes_free(self) -> None:
        with lock().read():
            pass
        steal(permits().first())
        waits = InBackground(lambda: tried_to_write(timeout=30))
        eventually(lambda: permits().held().count() == 3)
        expire(permits().get(holder="thief"))
        assert waits.result()


class TestNumberOfPermits:
    def test_the_first_user_decides_and_others_are_told(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING, "resourcepool")
        with lock().read():
            pass
        other = RWLock("catalogue", readers=5)
        for _ in range(2):
            with lock().read():
                assert elsewhere(lambda: other.write().acquire(timeout=0.05)) is None
            with other.write() as held:
                assert len(held.leases) == 3
        assert caplog.text.count("has 3 permits in the database; readers=5 is ignored") == 1

    @pytest.mark.parametrize("number", [1, 2, 5])
    def test_and_made_again_while_a_writer_waits(self, number: int) -> None:
        reader = InBackgroundReader()
        waits = InBackground(lambda: how_many(timeout=60))
        eventually(lambda: permits().held().count() == 3)
        RWLockPermit.objects.all().delete()
        with RWLock("catalogue", readers=number).read():
            with pytest.raises(LeaseLost):
                reader.release()
            # Or the writer was the first to see the new rows, and has written.
            eventually(lambda: Ticket.objects.waiting().exists() or not waits.is_alive())
        there_are = permits().count()
        assert there_are in (number, 3)  # 3: the writer looked just then, and made them
        assert waits.result(60) == there_are

    def test_and_made_again_between_counting_and_claiming(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with lock().write():
            pass
        claim_all = verbs.claim_all

        def made_again(*args: Any) -> Any:
            monkeypatch.undo()
            fences = dict(permits().values_list("pk", "fence"))
            RWLockPermit.objects.all().delete()
            with RWLock("catalogue", readers=5).read():
                pass
            assert set(fences) < {row.pk for row in permits()}
            return claim_all(*args)

        monkeypatch.setattr("resourcepool.leases.verbs.claim_all", made_again)
        held: Any = lock().write().acquire(timeout=30)
        assert len(held.leases) == 5

    def test_and_made_again_before_the_ticket_is_seen_to_be_served(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The ticket got as many as there were; now there are more."""
        confirmed = RWPermits._confirmed

        def too_late(self: RWPermits, *args: Any) -> Any:
            monkeypatch.undo()
            RWLockPermit.objects.create(key="catalogue#3", name="catalogue")
            return confirmed(self, *args)

        with lock().read():
            waits = InBackground(lambda: how_many(timeout=30))
            eventually(Ticket.objects.waiting().exists)
            monkeypatch.setattr(RWPermits, "_confirmed", too_late)
        assert waits.result() == 4

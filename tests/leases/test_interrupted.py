"""A release that is interrupted, fails, or runs in two threads leaves no lease renewed without a handle."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.db import transactions
from resourcepool.db.dialect import statement
from resourcepool.exceptions import DatabaseUnavailable, LeaseReleased
from resourcepool.leases import keeper as keeping, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.terms import Terms
from tests.app.models import Bare
from tests.app.rows import busy_for, columns, hold, lasts, new, several
from tests.committed import Clock
from tests.eventually import InBackground, eventually
from tests.leases.test_lease import unavailable

INTERRUPTIONS = [KeyboardInterrupt, SystemExit]


@pytest.fixture
def row() -> Any:
    return new(Bare)


@pytest.fixture(params=INTERRUPTIONS)
def interrupted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[BaseException]:
    """Whoever releases is interrupted by this."""
    interruption: type[BaseException] = request.param

    def interrupt(*_: Any, **__: Any) -> bool:
        raise interruption

    monkeypatch.setattr(verbs, "release", interrupt)
    return interruption


class HangingHandOver:
    """Another thread hands a lease over, and the database does not answer until it is told to."""

    def __init__(self, lease: Any, monkeypatch: pytest.MonkeyPatch, answer: Callable[..., bool]) -> None:
        self._begun, self._go_on = threading.Event(), threading.Event()

        def hang(*args: Any, **options: Any) -> bool:
            self._begun.set()
            assert self._go_on.wait(20)
            return answer(*args, **options)

        monkeypatch.setattr(verbs, "hand_over", hang)
        self._thread = InBackground(lambda: lease.hand_over("heir"))
        assert self._begun.wait(20)

    def end(self) -> Any:
        self._go_on.set()
        return self._thread.result()


class TestAnInterruption:
    def test_of_a_grant_leaves_nothing_that_is_renewed(self, row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        keep = keeper.keep

        def interrupted(lease: Any) -> None:
            keep(lease)
            raise KeyboardInterrupt

        monkeypatch.setattr(keeper, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            hold(row)
        assert keeper.leases() == []
        assert len(keeper.unreleased()) == 1, "the end of the process releases it"

    def test_of_the_end_of_a_block_leaves_nothing_that_is_renewed(
        self, row: Any, interrupted: type[BaseException]
    ) -> None:
        with pytest.raises(interrupted), hold(row) as lease:
            pass
        assert not keeper.is_renewing(lease)

    def test_of_the_end_of_a_block_that_failed_does_not_either(
        self, row: Any, interrupted: type[BaseException]
    ) -> None:
        with pytest.raises(interrupted), hold(row) as lease:
            raise LookupError
        assert not keeper.is_renewing(lease)

    def test_of_a_release_leaves_it_to_the_caller_to_call_again(
        self, row: Any, interrupted: type[BaseException], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = hold(row)
        with pytest.raises(interrupted):
            lease.release()
        assert not keeper.is_renewing(lease)
        assert lease in keeper.unreleased(), "the end of the process releases it"
        assert not lease.is_held, "it may have taken effect"
        monkeypatch.undo()
        lease.release()
        assert (columns(row)["fence"], busy_for(row) <= 0) == (2, True)
        assert lease not in keeper.unreleased()


class TestWhatWasLetGo:
    def test_can_still_be_released_and_is_forgotten_then(self, row: Any) -> None:
        lease = hold(row)
        lease._stop_renewing()
        lease.release()
        assert columns(row)["fence"] == 2
        assert lease not in keeper.unreleased()

    def test_is_forgotten_without_a_word_when_it_has_lapsed(
        self, row: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        lease = hold(row, ttl=60)
        lease._stop_renewing()
        process_clock.advance(61)
        eventually(lambda: lease not in keeper.unreleased())
        assert not lease.lost.is_set()
        assert caplog.text == ""

    def test_is_not_remembered_when_it_had_ended_before(self, row: Any) -> None:
        lease = hold(row)
        lease.release()
        lease._stop_renewing()
        assert lease not in keeper.unreleased()


def test_one_abandoned_while_the_database_is_away_is_a_line_in_the_log_without_a_traceback(
    row: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lease = hold(row)
    monkeypatch.setattr(verbs, "release", unavailable)
    lease._release_quietly()
    (said,) = caplog.records
    assert said.getMessage() == f"could not release {lease}; it will expire: database 'default' is gone"
    assert said.exc_info is None


class TestTwoThreads:
    def test_what_one_gave_up_for_good_is_not_renewed_when_the_other_fails(
        self, row: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = hold(row)
        other = HangingHandOver(lease, monkeypatch, unavailable)
        lease._release_quietly()
        with pytest.raises(DatabaseUnavailable):
            other.end()
        assert not keeper.is_renewing(lease)

    def test_the_second_is_told_that_it_is_being_given_up(
        self, row: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease = hold(row)
        other = HangingHandOver(lease, monkeypatch, verbs.hand_over)
        for use in (lease.release, lease.ensure_held):
            with pytest.raises(LeaseReleased, match="is being released by another thread"):
                use()
        assert other.end() == 2
        assert columns(row)["holder"] == "heir"
        assert lease not in keeper.unreleased()


class TestWhileItIsGivenUp:
    def test_it_is_not_renewed_and_is_again_when_that_failed(
        self, row: Any, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lease, another = hold(row, ttl=60), hold(new(Bare), ttl=60)
        other = HangingHandOver(lease, monkeypatch, unavailable)
        sent_at = lease._trust.sent_at
        process_clock.advance(25)
        eventually(lambda: another._trust.due_at > process_clock())
        assert lease._trust.sent_at == sent_at
        with pytest.raises(DatabaseUnavailable):
            other.end()
        process_clock.advance(0)
        eventually(lambda: lease._trust.sent_at > sent_at)

    def test_its_loss_is_told_when_that_failed(
        self, row: Any, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(keeping, "renew_together", unavailable)
        lease, another = hold(row, ttl=60), hold(new(Bare), ttl=60)
        other = HangingHandOver(lease, monkeypatch, unavailable)
        process_clock.advance(61)
        assert another.lost.wait(20), "the watch has looked"
        assert not lease.lost.is_set()
        with pytest.raises(DatabaseUnavailable):
            other.end()
        assert lease.lost.wait(20)


class TestAClaimThatIsNotAnswered:
    """A signal handler raises when the database has granted it, and before Python knows that."""

    @pytest.fixture(autouse=True)
    def _on_committed_rows(self, transactional_db: None) -> None:
        pass

    def test_of_one_row_is_undone(self, row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._claim_unheard(row, Terms(60, "me", holder_is_unique=True), monkeypatch)
        assert (busy_for(row) <= 0, columns(row)["fence"]) == (True, 2)

    def test_of_several_is_undone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @contextlib.contextmanager
        def interrupted(connection: Any) -> Iterator[None]:
            with short_transaction(connection):
                yield
            monkeypatch.undo()
            raise KeyboardInterrupt

        rows, short_transaction = several(Bare, 2), transactions.short_transaction
        monkeypatch.setattr(transactions, "short_transaction", interrupted)
        with pytest.raises(KeyboardInterrupt):
            verbs.claim_all(connection, Bare, [row.pk for row in rows], Terms(60, "me", holder_is_unique=True))
        assert [(busy_for(row) <= 0, columns(row)["fence"]) for row in rows] == [(True, 2)] * 2

    def test_under_a_name_that_others_use_expires(self, row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._claim_unheard(row, Terms(60, "me"), monkeypatch)
        assert lasts(row, 60)

    def test_that_found_it_taken_leaves_it_alone(self, row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        with hold(row, holder="other") as held:
            self._claim_unheard(row, Terms(60, "me", holder_is_unique=True), monkeypatch)
            held.renew()

    @staticmethod
    def _claim_unheard(row: Any, terms: Terms, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*args: Any) -> Any:
            run(*args)
            monkeypatch.undo()
            raise KeyboardInterrupt

        run = statement.run
        monkeypatch.setattr(statement, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            verbs.claim(connection, Bare, row.pk, terms)

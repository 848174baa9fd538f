"""A signal handler that raises, at whatever line: no message is passed over, and no name stays blocked."""

import gc
from typing import Any

import pytest

from resourcepool.exceptions import MessagesMissed
from resourcepool.leases.keeper import keeper
from resourcepool.locks import Channel
from resourcepool.locks.channels import position
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.locks.channels.models import Message as MessageRow
from tests.app.rows import expire
from tests.case_sample import EVERY
from tests.eventually import eventually
from tests.interruptions import at_each_line, end
from tests.locks.channels.reading import durable, filled


class Reading:
    """Reads the second of three messages, after the first: what is interrupted."""

    def __init__(self, name: str | None, removed: int = 0) -> None:
        self._name, self._removed, self._reader = name, removed, None
        self.got: list[int] = []

    def prepare(self) -> None:
        """Begin anew."""
        self.close()
        ChannelRow.objects.filter(pk="c").remove()
        filled(3)
        reader = self._reader = Channel("c").subscribe(self._name, from_="start")
        self.got[:] = [next(reader).number]
        MessageRow.objects.filter(number=self._removed).delete()

    def read(self) -> None:
        """Read one more, or note which were missed."""
        try:
            message = next(self._reader)
            end()
            self.got.append(message.number)
        except BaseException as error:
            end()
            missed = error if isinstance(error, MessagesMissed) else error.__context__
            if isinstance(missed, MessagesMissed):  # interrupted on its way out, it is the context
                self.got.extend(range(missed.first, missed.last + 1))
            if missed is not error:
                raise

    def read_on(self) -> None:
        while self.got[-1] < 3:
            try:
                self.got.append(self._reader.get(timeout=0).number)
            except MessagesMissed as missed:
                self.got.extend(range(missed.first, missed.last + 1))

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


@pytest.mark.parametrize(("is_read_ahead", "removed"), [(False, 0), (False, 2), (True, 0)])
@pytest.mark.parametrize("name", [None, "a"])
def test_who_asks_again_gets_every_message(
    monkeypatch: pytest.MonkeyPatch, name: str | None, is_read_ahead: bool, removed: int
) -> None:
    if not is_read_ahead:
        monkeypatch.setattr(position, "BATCH", 1)
    reading, places = Reading(name, removed), 0
    files = ["resourcepool/locks/channels/"]
    for place in at_each_line(reading.read, reading.prepare, files=files, since=(), every=EVERY):
        reading.read_on()
        assert list(dict.fromkeys(reading.got)) == [1, 2, 3] == sorted(set(reading.got)), place
        places += 1
    assert places * EVERY > 20
    reading.close()


def renewed() -> list[Any]:
    """Return what is renewed after a look for leases that nobody can release, which the keeper takes now and then."""
    keeper._report_leaks("default")
    return keeper.leases()


def test_who_begins_and_is_interrupted_blocks_no_name() -> None:
    filled(1)

    def begin() -> None:
        with Channel("c").subscribe("a", from_="start"):
            end()

    def prepare() -> None:
        for row in type(durable()).objects.all():
            expire(row)

    Channel("c").subscribe("a").close()
    places = 0
    for place in at_each_line(begin, prepare, since=["_take"], every=EVERY):
        places += 1
        if (
            keeper.leases()
        ):  # only then: a collection at each line takes minutes in a process that ran many tests
            gc.collect()
        assert eventually(lambda: not renewed(), because=lambda place=place: place)
    assert places * EVERY > 100

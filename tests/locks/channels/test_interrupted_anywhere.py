"""A signal handler that raises, at whatever line: no name stays blocked."""

import gc

from resourcepool.leases.keeper import keeper
from resourcepool.locks import Channel
from tests.app.rows import expire
from tests.case_sample import EVERY
from tests.eventually import eventually
from tests.interruptions import at_each_line, end
from tests.locks.channels.reading import durable, filled
from tests.locks.test_owners import renewed


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
        # Only then: a collection at each line takes minutes in a process that ran many tests.
        if keeper.leases():
            gc.collect()
        assert eventually(lambda: not renewed(), because=lambda place=place: place)
    assert places * EVERY > 100

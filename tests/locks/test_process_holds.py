"""Permits are released by any thread of the process that holds them, and no more of them than it holds."""

import threading

import pytest

from resourcepool.exceptions import NotHeld
from resourcepool.locks import Semaphore
from tests.eventually import InBackground, elsewhere
from tests.locks.seats import held


def test_a_block_that_ends_in_another_thread_releases_what_it_took() -> None:
    seats, name = Semaphore("seats", 4), Semaphore("seats", 4)
    mine = name.__enter__()
    of_block = seats.__enter__()
    other = held(seats)

    def end() -> list[bool]:
        theirs = held(seats)
        seats.__exit__(None, None, None)
        return [hold.is_held for hold in (mine, of_block, other, theirs)]

    assert elsewhere(end) == [True, False, True, True]
    name.__exit__(None, None, None)
    assert not mine.is_held


def test_blocks_that_end_in_another_thread_leave_nothing_behind() -> None:
    seats = Semaphore("seats", 2)
    for _ in range(2):
        elsewhere(seats.__enter__)
        seats.__exit__(None, None, None)
    with seats as hold:
        elsewhere(seats.__enter__)
    assert not hold.is_held, "that of this thread"
    seats.__exit__(None, None, None)
    assert seats.available() == 2
    with pytest.raises(NotHeld, match="this process holds 0"):
        seats.__exit__(None, None, None)


def test_those_of_the_thread_first_and_the_latest_first() -> None:
    seats = Semaphore("seats", 4)
    first, second = held(seats), held(seats)
    theirs = elsewhere(lambda: held(seats))
    seats.release()
    assert [hold.is_held for hold in (first, second, theirs)] == [True, False, True]
    seats.release(2)
    assert seats.available() == 4


def test_twice_is_an_error() -> None:
    hold = held(Semaphore("seats", 2))
    other = held(Semaphore("seats", 2))
    hold.release()
    with pytest.raises(NotHeld, match="was released before"):
        hold.release()
    assert other.is_held


def test_threads_that_release_at_once_never_release_more_than_there_is() -> None:
    seats, errors = Semaphore("seats", 8), list[BaseException]()
    held(seats, 8)
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        try:
            seats.release(2)
        except NotHeld as error:
            errors.append(error)

    threads = [InBackground(work) for _ in range(6)]
    for thread in threads:
        thread.result()
    assert len(errors) == 2
    assert seats.available() == 8

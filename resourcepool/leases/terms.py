"""A request, and the terms of one grant: its options, its holder, its trust window, and how it ended."""

import dataclasses
import functools
import itertools
import math
import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from resourcepool import options
from resourcepool.events import sentence_for
from resourcepool.exceptions import LeaseLost, LeaseReleased
from resourcepool.text import host_name, printable

MIN_TTL = 0.1  # seconds
MAX_LENGTH = 200  # of a holder's name
PACKAGE = str(Path(__file__).resolve().parent.parent)
WRAPPERS = ("contextlib.py", "/asgiref/", "/concurrent/futures/", "threading.py", "/django/utils/asyncio.py")

SourceLine = tuple[CodeType, int]  # in the caller's code, and the line


@dataclasses.dataclass(slots=True)  # not frozen: that takes far longer to make, and a lock makes one each time
class Terms:
    """The options a lease was acquired with; times in seconds. Do not change them: leases share them.

    Attributes:
        ttl: how long the grant lasts after each renewal.
        holder: the holder's name, for people; "": a new one for every claim (``default_holder``).
        holder_is_unique: no other claim ever uses this name, so it identifies the owner of an unconfirmed claim.
        cooldown: how long after the release the row stays unavailable.
        max_hold: it is not renewed beyond this long after the grant; None: no limit.
        leak_after: a lease held for longer is reported as leaked; None: never.
        renew_every: how often it is renewed; None: three times per ttl.
        is_renewed_by_holder: its holder renews it; the keeper only watches it.
        on_lost: called once with the ``Lease``, from a background thread, as soon as the loss is noticed.
        is_recorded: whether its events are recorded in the history.
        actor: the user for whom another program acts, for the history; "": this process acts.
    """

    ttl: float
    holder: str
    holder_is_unique: bool = False
    cooldown: float = 0.0
    max_hold: float | None = None
    leak_after: float | None = None
    renew_every: float | None = None
    is_renewed_by_holder: bool = False
    on_lost: Callable[[Any], object] | None = None
    is_recorded: bool = False
    actor: str = ""


@dataclasses.dataclass(slots=True)  # not frozen: see ``Terms``
class Request:
    """A validated request. Immutable by convention: callers share it.

    Attributes:
        count: number of rows, all or none.
        timeout: maximum wait in seconds.
        priority: lowest first, then by arrival.
        strategy: name of the rule that chooses a free row.
        selector: canonical JSON of the requested fields; equal text means an equal selection.
        terms: the options of the leases.
        fifo_once: enqueue without claiming free rows, with a single ticket: if it expires, the request ends without
            rows. The database decides whether the request was served or timed out first.
        ends_session: a long wait closes the thread's session, even if an earlier request opened it.
    """

    terms: Terms
    count: int = 1
    timeout: float = 0.0
    priority: int = 0
    strategy: str = ""
    selector: str = "{}"
    allow_in_transaction: bool = False
    fifo_once: bool = False
    ends_session: bool = False

    @property
    def within(self) -> str:
        """The timeout, for the end of a sentence; "" if there is none."""
        return "" if math.isinf(self.timeout) else f" within {round(self.timeout, 3):g} s"

    def again(self, timeout: object = None) -> "Request":
        """Return the same request for one row, with a new ``timeout`` if given."""
        wait = self.timeout if timeout is None else options.seconds("timeout", timeout)
        return dataclasses.replace(self, count=1, timeout=wait)


class Grant(NamedTuple):
    """A granted row.

    Attributes:
        holder: the holder's name in the row.
        sent_at: this process's clock just before the decisive statement was sent.
        ttl: seconds it lasts until the first renewal; None: as requested.
    """

    pk: Any
    fence: int
    holder: str
    sent_at: float
    ttl: float | None = None


def default_holder() -> str:
    """Return "host/pid/thread/number": readable, and unique for every request anywhere.

    The number starts with a random part per process, because containers may share their host name and pid 1.
    """
    return f"{_thread.prefix}{next(_requests)}"


class _Thread(threading.local):
    """The start of holder names in the calling thread, cached because every claim needs one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        name = printable(threading.current_thread().name, "_").replace("/", "_")[:60]
        self.prefix = f"{_host}/{os.getpid()}/{name}/{_incarnation}."


def caller_location() -> SourceLine | None:
    """Return the nearest caller outside this package; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_wrapper(frame.f_code.co_filename):
            return frame.f_code, frame.f_lineno
        frame = frame.f_back
    return None


@functools.lru_cache(1_000)
def _is_wrapper(file: str) -> bool:
    return file.startswith(PACKAGE) or any(part in file for part in WRAPPERS)


def format_location(location: SourceLine) -> str:
    """Return "file:line in function"."""
    code, line = location
    return f"{code.co_filename}:{line} in {code.co_name}"


def margin(ttl: float) -> float:
    """Return the seconds before expiry in the database at which a holder stops trusting its lease."""
    return min(ttl / 10, 2.0)


class Trust:
    """The time window in which a handle trusts its grant; each confirmed renewal extends it.

    It starts when the renewal was *sent* and ends a margin before ``ttl``, so never later than in the database. All
    times are by this process's clock, in seconds.

    Attributes:
        granted_at, sent_at: when the claim, and the last confirmed renewal, were sent.
        valid_for: seconds after ``sent_at`` for which the row is leased in the database.
        until: when the handle stops trusting itself.
        due_at: when it should be renewed next.
    """

    __slots__ = ("_terms", "due_at", "granted_at", "sent_at", "until", "valid_for")

    def __init__(
        self, terms: Terms, granted_at: float, *, is_proven: bool, first_ttl: float | None = None
    ) -> None:
        """Start the window with the grant.

        Args:
            is_proven: False: a rollback would undo the claim, so it is renewed at once.
            first_ttl: seconds the grant lasts until its first renewal; None: its ttl.
        """
        self._terms, self.granted_at = terms, granted_at
        self._start(granted_at, terms.ttl if first_ttl is None else min(first_ttl, terms.ttl))
        if not is_proven:
            self.due_at = 0.0

    def _start(self, sent_at: float, valid_for: float) -> None:
        self.sent_at, self.valid_for = sent_at, valid_for
        until = sent_at + valid_for - margin(valid_for)
        self.until = until if self._terms.max_hold is None else min(until, self._held_until)
        self.due_at = sent_at + min(self._terms.renew_every or self._terms.ttl / 3, valid_for / 3)

    def next_ttl(self, now: float) -> float:
        """Return the seconds of the next renewal: the ttl, but not beyond ``max_hold``."""
        if self._terms.max_hold is None:
            return self._terms.ttl
        return max(0.0, min(self._terms.ttl, self.granted_at + self._terms.max_hold - now))

    def confirm(self, sent_at: float) -> None:
        """Extend the window: the renewal sent at ``sent_at`` was granted."""
        self._start(max(self.sent_at, sent_at), self._terms.ttl)

    def end_reason(self, now: float) -> str:
        """Return why the window is over ``now``, as a sentence."""
        if self._terms.max_hold is not None and now >= self._held_until:
            return sentence_for("max_hold", seconds=self._terms.max_hold)
        return sentence_for(
            "not_renewed_in_ttl" if self.valid_for == self._terms.ttl else "not_renewed", seconds=self.valid_for
        )

    @property
    def _held_until(self) -> float:
        return self.granted_at + (self._terms.max_hold or 0.0) - margin(self._terms.ttl)


class Ending:
    """How a grant ended for its holder; decided once, by the first thread that notices.

    Attributes:
        lost: the error that every further use raises, if the grant was lost.
        outcome: how the holder ended it ("released"), if it was not lost.
        is_ending: whether a thread is releasing it or handing it over now.
        is_in_doubt: an attempt to end it failed, and may still have taken, or take, effect.
    """

    __slots__ = ("_lock", "is_ending", "is_in_doubt", "lost", "outcome")

    def __init__(self) -> None:
        self.lost: LeaseLost | None = None
        self.outcome = ""
        self.is_ending = self.is_in_doubt = False
        self._lock = threading.RLock()  # reentrant for signal handlers

    @property
    def has_ended(self) -> bool:
        """Whether the ending is decided."""
        return self.lost is not None or bool(self.outcome)

    def raise_if_ended(self, lease: object) -> None:
        """Raise LeaseLost or LeaseReleased if ``lease`` has ended or may have ended."""
        if self.lost is not None:
            raise self.lost.again()
        if self.outcome:
            raise LeaseReleased(f"{lease} was {self.outcome} before")
        if self.is_ending:
            raise LeaseReleased(f"{lease} is being released by another thread")
        if self.is_in_doubt:
            raise LeaseReleased(f"{lease} may have been released: the database did not answer")

    def begin(self, lease: object) -> None:
        """Begin to end ``lease``, in one thread at a time: raises LeaseReleased if another one does."""
        with self._lock:
            is_ending, self.is_ending = self.is_ending, True
        if is_ending:
            raise LeaseReleased(f"{lease} is being released by another thread")

    def end(self, outcome: str = "", lost: LeaseLost | None = None) -> bool:
        """Decide how it ended; returns False if that was decided before."""
        with self._lock:
            is_first = self.lost is None and not self.outcome
            if is_first:
                self.outcome, self.lost = outcome, lost
        return is_first


def _reset() -> None:
    global _incarnation, _requests
    _incarnation, _requests = secrets.token_hex(4), itertools.count(1)
    _thread.reset()


_host = host_name()
_incarnation = ""
_requests = itertools.count(1)
_thread = _Thread()
_reset()
os.register_at_fork(after_in_child=_reset)

"""The terms of one grant: its options, who has it, how long it is trusted, how it ended."""

import functools
import itertools
import os
import secrets
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from resourcepool.events import sentence_for
from resourcepool.exceptions import LeaseLost, LeaseReleased
from resourcepool.labels import host_name

MIN_TTL = 0.1  # seconds
MAX_LENGTH = 200  # of a holder's name
OURS = str(Path(__file__).resolve().parent.parent)
PASSED_THROUGH = ("contextlib.py", "/asgiref/", "/concurrent/futures/", "threading.py")

Result = TypeVar("Result")
SourceLine = tuple[CodeType, int]  # in the caller's code, and the line


@dataclass(slots=True)  # not frozen: such a one takes far longer to make, and a lock makes one each time
class Terms:
    """The options a lease was acquired with; times in seconds. Not to be changed: leases share them.

    Attributes:
        ttl: how long the grant lasts after each renewal.
        holder: who has it, for people to read; "": every claim is made under a new name (``default_holder``).
        holder_is_unique: no other claim ever uses that text, so it identifies the owner of an unconfirmed claim.
        cooldown: how long the row rests after the release.
        max_hold: it is not renewed beyond this long after the grant; None: as long as the holder lives.
        leak_after: held for longer it is reported as leaked; None: never.
        renew_every: how often it is renewed; None: three times per ttl.
        renew_while: called before each renewal; while it returns false, nothing is renewed, until the lease expires;
            None: always renew.
        on_lost: called with the ``Lease``, once, from a background thread, as soon as the loss is noticed.
        is_recorded: whether its events are written to the history.
        actor: for whom a program elsewhere acts, for the history; "": this process acts.
    """

    ttl: float
    holder: str
    holder_is_unique: bool = False
    cooldown: float = 0.0
    max_hold: float | None = None
    leak_after: float | None = None
    renew_every: float | None = None
    renew_while: Callable[[], bool] | None = None
    on_lost: Callable[[Any], object] | None = None
    is_recorded: bool = False
    actor: str = ""

    @property
    def may_renew(self) -> bool:
        """Whether the holder still does the work that the lease is for."""
        return self.renew_while is None or self.renew_while()


class Grant(NamedTuple):
    """One row that was granted.

    Attributes:
        holder: who has it, as in the row.
        sent_at: this process's clock just before the decisive statement was sent.
        ttl: how many seconds it lasts until the first renewal; None: as long as requested.
    """

    pk: Any
    fence: int
    holder: str
    sent_at: float
    ttl: float | None = None


def default_holder() -> str:
    """Return "host/pid/thread/number": readable, and never the same for two requests anywhere.

    The number begins with a random part of its own for every process, because hosts in containers may share
    their name and every pid 1.
    """
    return f"{_thread.prefix}{next(_requests)}"


class _Thread(threading.local):
    """What the names of holders in the calling thread begin with; read once, for a name is made for every claim."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        name = "".join(c if c.isprintable() and c != "/" else "_" for c in threading.current_thread().name)[:60]
        self.prefix = f"{_host}/{os.getpid()}/{name}/{_incarnation}."


def acquired_at() -> SourceLine | None:
    """Return the nearest caller outside this package; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _passes_on(frame.f_code.co_filename):
            return frame.f_code, frame.f_lineno
        frame = frame.f_back
    return None


@functools.lru_cache(1_000)
def _passes_on(file: str) -> bool:
    """Whether functions in this file only acquire on behalf of a caller."""
    return file.startswith(OURS) or any(part in file for part in PASSED_THROUGH)


def written(at: SourceLine) -> str:
    """Return "file:line in function"."""
    code, line = at
    return f"{code.co_filename}:{line} in {code.co_name}"


def margin(ttl: float) -> float:
    """Return how many seconds before the database's own deadline a holder stops trusting a lease."""
    return min(ttl / 10, 2.0)


class Trust:
    """The window in which a handle relies on its grant; each confirmed renewal moves its end.

    It counts from when the renewal was *sent*, and ends a margin before ``ttl`` has passed since, so never later than
    in the database. All times are by this process's own clock, in seconds.

    Attributes:
        granted_at, sent_at: when the claim, and the last confirmed renewal, were sent.
        lasts: for how many seconds after ``sent_at`` the row is the holder's in the database.
        until: when the handle stops trusting itself.
        due_at: when it should be renewed next.
    """

    __slots__ = ("_terms", "due_at", "granted_at", "sent_at", "until", "valid_for")

    def __init__(
        self, terms: Terms, granted_at: float, *, is_proven: bool, first_ttl: float | None = None
    ) -> None:
        """Begin the window with the grant.

        Args:
            is_proven: False: a rollback would undo the claim, so it is renewed at once.
            first_ttl: how long the grant lasts until its first renewal, in seconds; None: its ttl.
        """
        self._terms, self.granted_at = terms, granted_at
        self._count(granted_at, terms.ttl if first_ttl is None else min(first_ttl, terms.ttl))
        if not is_proven:
            self.due_at = 0.0

    def _count(self, sent_at: float, valid_for: float) -> None:
        self.sent_at, self.valid_for = sent_at, valid_for
        until = sent_at + valid_for - margin(valid_for)
        self.until = until if self._terms.max_hold is None else min(until, self._held_until)
        self.due_at = sent_at + min(self._terms.renew_every or self._terms.ttl / 3, valid_for / 3)

    def next_ttl(self, now: float) -> float:
        """Return how many seconds to renew it for: its ttl, but not beyond ``max_hold``."""
        if self._terms.max_hold is None:
            return self._terms.ttl
        return max(0.0, min(self._terms.ttl, self.granted_at + self._terms.max_hold - now))

    def confirm(self, sent_at: float) -> None:
        """Note that the renewal sent at ``sent_at`` was granted."""
        self._count(max(self.sent_at, sent_at), self._terms.ttl)

    def why_over(self, now: float) -> str:
        """Return why it is over ``now``, in words."""
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
        given: what the holder did with it ("released"), if it was not lost.
        is_in_doubt: an attempt to give it up failed, and it is unknown whether it took effect, or will.
    """

    __slots__ = ("_attempt", "_lock", "given", "is_in_doubt", "lost")

    def __init__(self) -> None:
        self.lost: LeaseLost | None = None
        self.given = ""
        self.is_in_doubt = False
        self._attempt: object = None  # of the thread that is giving it up
        self._lock = threading.RLock()  # a signal handler may come in between

    @property
    def has_ended(self) -> bool:
        """Whether the ending is decided."""
        return self.lost is not None or bool(self.given)

    @property
    def is_ending(self) -> bool:
        """Whether a thread is giving it up at this moment."""
        return self._attempt is not None

    @property
    def is_near(self) -> bool:
        """Whether the grant has ended, or may have."""
        return self.has_ended or self.is_ending or self.is_in_doubt

    def raise_if_ended(self, lease: object) -> None:
        """Raise LeaseLost or LeaseReleased if ``lease`` has ended, or may have."""
        if self.lost is not None:
            raise self.lost.again()
        if self.given:
            raise LeaseReleased(f"{lease} was {self.given} before")
        if self.is_ending:
            raise LeaseReleased(f"{lease} is being given up by another thread")
        if self.is_in_doubt:
            raise LeaseReleased(
                f"{lease} was given up, and the database did not answer: that may have taken effect"
            )

    def attempt(self, lease: object, give_up: Callable[[], Result]) -> Result:
        """Give ``lease`` up, in one thread at a time; after a failure it may be tried again."""
        mine = object()
        try:  # from here on an interrupted attempt is over, wherever it was interrupted
            with self._lock:
                if self._attempt is None:
                    self._attempt = mine
            if self._attempt is not mine:
                raise LeaseReleased(f"{lease} is being given up by another thread")
            try:
                return give_up()
            except BaseException:
                self.is_in_doubt = True  # for good: what was sent may arrive late
                raise
        finally:
            if self._attempt is mine:
                self._attempt = None

    def end(self, given: str = "", lost: LeaseLost | None = None) -> bool:
        """Note how it ended; False when that was already decided."""
        with self._lock:
            first = not self.has_ended
            if first:
                self.given, self.lost = given, lost
        return first


def _reset() -> None:
    global _incarnation, _requests
    _incarnation, _requests = secrets.token_hex(4), itertools.count(1)
    _thread.begin()


_host = host_name()
_incarnation = ""
_requests = itertools.count(1)
_thread = _Thread()
_reset()
os.register_at_fork(after_in_child=_reset)

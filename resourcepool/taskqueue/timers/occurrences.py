"""When a recurring timer is due next: pure decisions. Moments have a time zone."""

import datetime
import json
import math
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.timers.models import MAX_SCHEDULE, Timer

CatchUp = Timer.CatchUp
LEAST_INTERVAL, MOST_INTERVAL = 1.0, 3_650 * options.DAY  # seconds
MOST_COUNTED = 1_000  # occurrences of a crontab that were missed
CRON = _(
    "five fields: minute 0-59, hour 0-23, day of month 1-31 or L, month 1-12, day of week 0-7 (0 and 7: Sunday);"
    " each * or numbers, lists 1,15, ranges 1-5, steps */10"
)
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)  # of the search for a crontab's first occurrence
NEVER = _("it never happens: there is no such day")


class Every(NamedTuple):
    """An interval, counted from the last due moment: it never drifts, and knows no daylight saving."""

    seconds: float

    def after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """Return the first occurrence after ``moment``, which is one itself; None: there is none."""
        return moment + datetime.timedelta(seconds=self.seconds)

    def missed(self, due_at: datetime.datetime, now: datetime.datetime) -> int:
        """Return how many occurrences there were after ``due_at``, until ``now``."""
        return max(0, math.floor((now - due_at).total_seconds() / self.seconds))

    def text(self) -> str:
        return json.dumps({"every": self.seconds})


class Cron(NamedTuple):
    """A crontab by the clock on the wall of a time zone.

    When clocks go forward, what is due in the hour that is left out fires once, right after it. When they go back, what
    is due at a fixed time in the hour that comes twice fires the first time only; ``*`` in the minutes or hours fires
    in both. (As Debian's cron; the library is cronsim.)
    """

    fields: str
    tz: str

    def after(self, moment: datetime.datetime) -> datetime.datetime | None:
        start = moment.astimezone(datetime.UTC)
        for local in CronSim(self.fields, start.astimezone(ZoneInfo(self.tz))):
            found = local.astimezone(datetime.UTC)
            # Begun in the second of the two hours, it names the fixed times of the first one.
            if found > start:
                return found
        return None

    def missed(self, due_at: datetime.datetime, now: datetime.datetime) -> int:
        count, found = 0, self.after(due_at)
        while found is not None and found <= now and count < MOST_COUNTED:
            count, found = count + 1, self.after(found)
        return count

    def text(self) -> str:
        return json.dumps({"cron": self.fields, "tz": self.tz})


Schedule = Every | Cron


class Occurrence(NamedTuple):
    """What a timer that is due does: ``fires``, with so many ``missed`` ones before it; then it is due at ``next_at``.

    ``next_at`` None: it is over.
    """

    fires: bool
    missed: int
    next_at: datetime.datetime | None


def every(value: object) -> Every:
    """Return an interval in seconds, or a timedelta, as a schedule; raises BadOption."""
    return Every(options.seconds("every", value, least=LEAST_INTERVAL, most=MOST_INTERVAL))


def cron(fields: object, tz: object) -> Cron:
    """Return a crontab in a time zone as a schedule; raises BadOption."""
    made = Cron(" ".join(fields.split()) if isinstance(fields, str) else "", _zone(tz))
    if len(made.fields.split()) != 5 or len(made.text()) > MAX_SCHEDULE:
        raise BadOption("cron", fields, Sentence(CRON))
    try:
        found = made.after(START)
    except (CronSimError, ValueError):
        if not _has_no_day(made.fields):
            raise BadOption("cron", fields, Sentence(CRON)) from None
        found = None
    if found is None:
        raise BadOption("cron", fields, because=Sentence(NEVER))
    return made


def _has_no_day(fields: str) -> bool:
    """Return whether a crontab is refused only because its months have no such day, as "0 0 31 2 *" is."""
    minute, hour, day, month, weekday = fields.split()
    try:
        for one in ((day, "*"), ("*", month)):
            CronSim(" ".join((minute, hour, *one, weekday)), START)
    except (CronSimError, ValueError):
        return False
    return True


def read(text: str) -> Schedule | None:
    """Return the schedule that a row keeps; None: it fires once."""
    if not text:
        return None
    kept = json.loads(text)
    return Every(kept["every"]) if "every" in kept else Cron(kept["cron"], kept["tz"])


def unreadable(text: str) -> str:
    """Return why this process cannot tell when a schedule is due: its tzdata may be older, or its code; "": it can."""
    try:
        if schedule := read(text):
            schedule.after(START)
    except (
        ValueError,
        TypeError,
        LookupError,
        ArithmeticError,
        AttributeError,
        OSError,
        CronSimError,
    ) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def occurrence(
    schedule: Schedule | None,
    catch_up: str,
    due_at: datetime.datetime,
    now: datetime.datetime,
    *,
    is_retry: bool = False,
) -> Occurrence:
    """Decide about a timer that was due at ``due_at``.

    Args:
        is_retry: this occurrence has been begun before, so it is not skipped any more.
    """
    if schedule is None:
        return Occurrence(True, 0, None)
    following = schedule.after(due_at)
    if catch_up == CatchUp.ALL or following is None or following > now:
        return Occurrence(True, 0, following)
    following = _first_after(schedule, due_at, now)
    if catch_up == CatchUp.SKIP and not is_retry:
        return Occurrence(False, 0, following)
    return Occurrence(True, schedule.missed(due_at, now), following)


def _first_after(
    schedule: Schedule, due_at: datetime.datetime, now: datetime.datetime
) -> datetime.datetime | None:
    if isinstance(schedule, Every):
        return due_at + datetime.timedelta(seconds=schedule.seconds * (schedule.missed(due_at, now) + 1))
    return schedule.after(now)


def _zone(tz: object) -> str:
    allowed = Sentence(_("the name of a time zone, such as Europe/Berlin"))
    try:
        if isinstance(tz, str):
            return str(ZoneInfo(tz).key)
    except (ValueError, OSError, LookupError):
        pass
    raise BadOption("tz", tz, allowed)

"""The occurrences of recurring timers. Pure functions; datetimes are aware."""

import datetime
import json
import math
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from resourcepool import options
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.timers.models import MAX_SCHEDULE, Timer
from resourcepool.translation import gettext_noop as _

CatchUp = Timer.CatchUp
MIN_INTERVAL, MAX_INTERVAL = 1.0, 3_650 * options.DAY  # seconds
MAX_MISSED = 1_000  # occurrences of a crontab that are counted
CRON = _(
    "five fields: minute 0-59, hour 0-23, day of month 1-31 or L, month 1-12, day of week 0-7 (0 and 7: Sunday);"
    " each * or numbers, lists 1,15, ranges 1-5, steps */10; or @hourly, @daily, @weekly, @monthly, @yearly"
)
SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)  # where the search for a first occurrence begins
NEVER = _("never fires: no such date")


class Every(NamedTuple):
    """An interval, counted from the last due time: it does not drift and ignores daylight saving time."""

    seconds: float

    def after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """Return the occurrence after ``moment``, which is an occurrence itself; None: there is none."""
        return moment + datetime.timedelta(seconds=self.seconds)

    def missed(self, due_at: datetime.datetime, now: datetime.datetime) -> int:
        """Return the number of occurrences after ``due_at`` up to ``now``."""
        return max(0, math.floor((now - due_at).total_seconds() / self.seconds))

    def text(self) -> str:
        return json.dumps({"every": self.seconds})


class Cron(NamedTuple):
    """A crontab in the local time of a time zone, with the rules of Debian's cron.

    When clocks go forward, an occurrence in the skipped hour fires once, right after it. When clocks go back, a fixed
    time in the repeated hour fires the first time only; ``*`` in the minutes or hours fires both times.
    """

    fields: str
    tz: str

    def after(self, moment: datetime.datetime) -> datetime.datetime | None:
        start = moment.astimezone(datetime.UTC)
        for local in CronSim(self.fields, start.astimezone(ZoneInfo(self.tz))):
            moment_utc = local.astimezone(datetime.UTC)
            # In a repeated hour CronSim returns fixed times of its first pass.
            if moment_utc > start:
                return moment_utc
        return None

    def missed(self, due_at: datetime.datetime, now: datetime.datetime) -> int:
        count, following = 0, self.after(due_at)
        while following is not None and following <= now and count < MAX_MISSED:
            count, following = count + 1, self.after(following)
        return count

    def text(self) -> str:
        return json.dumps({"cron": self.fields, "tz": self.tz})


Schedule = Every | Cron


class Occurrence(NamedTuple):
    """What a due timer does now.

    Attributes:
        fires: whether it fires.
        missed: how many further occurrences this one includes.
        next_at: when it is due next; None: it is finished.
    """

    fires: bool
    missed: int
    next_at: datetime.datetime | None


def every(value: object) -> Every:
    """Return an interval in seconds, or a timedelta, as a schedule; raises BadOption."""
    return Every(options.seconds("every", value, least=MIN_INTERVAL, most=MAX_INTERVAL))


def cron(fields: object, tz: object) -> Cron:
    """Return a crontab, or one of ``SHORTHANDS``, in a time zone as a schedule; raises BadOption."""
    text = " ".join(fields.split()) if isinstance(fields, str) else ""
    schedule = Cron(SHORTHANDS.get(text, text), _zone(tz))
    if len(schedule.fields.split()) != 5 or len(schedule.text()) > MAX_SCHEDULE:
        raise BadOption("cron", fields, Sentence(CRON))
    try:
        first = schedule.after(START)
    except (CronSimError, ValueError):  # also "0 0 31 2 *"
        raise BadOption("cron", fields, Sentence(CRON)) from None
    if first is None:
        raise BadOption("cron", fields, because=Sentence(NEVER))
    return schedule


def read(text: str) -> Schedule | None:
    """Return the schedule stored in a row; None: it fires once."""
    if not text:
        return None
    stored = json.loads(text)
    return Every(stored["every"]) if "every" in stored else Cron(stored["cron"], stored["tz"])


def unreadable(text: str) -> str:
    """Return why this process cannot evaluate a schedule: its tzdata or its code may be too old; "": it can."""
    try:
        if schedule := read(text):
            schedule.after(START)
    except Exception as error:  # noqa: BLE001 (whatever a newer version may have stored)
        return f"cannot read its schedule: {type(error).__name__}: {error}"
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
        is_retry: this occurrence has been started before, so it is not skipped.
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

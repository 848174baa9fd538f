"""The schedules of recurring timers as text."""

from resourcepool.status.times import exact_duration
from resourcepool.taskqueue.timers.occurrences import Cron, Every, read
from resourcepool.translation import gettext as _


def recurrence(text: str) -> str:
    """Return a schedule as text: "every 5 min", "30 7 * * 1-5 (Europe/Berlin)"; "": it fires once."""
    try:
        schedule = read(text)
    except (ValueError, LookupError, TypeError):  # written past validation
        return text
    if isinstance(schedule, Every):
        return _("every %s") % exact_duration(schedule.seconds)
    return f"{schedule.fields} ({schedule.tz})" if isinstance(schedule, Cron) else ""

"""The state of a row in a word or two, with its gravity: the same on every surface."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from resourcepool.resources.state import State
from resourcepool.translation import gettext_lazy as _


class Level(StrEnum):
    """How grave a state is."""

    OK = "ok"
    BUSY = "busy"  # in use, as it should be
    IDLE = "idle"  # nothing to do, or finished
    WARN = "warn"  # slower than it should be, or stopped on purpose
    BAD = "bad"  # an operator has to act


class Badge(NamedTuple):
    """A state.

    Attributes:
        code: the state in JSON.
        label: the state for people, translated when it is shown.
    """

    level: Level
    code: str
    label: Any

    @property
    def html(self) -> SafeString:
        """Its label, coloured by its gravity; all pages draw it so."""
        return format_html('<span class="resourcepool-state {}">{}</span>', self.level, self.label)


def first_badge(states: Iterable[tuple[Any, Badge]], otherwise: Badge) -> Badge:
    """Return the badge of the first condition that applies."""
    return next((badge for applies, badge in states if applies), otherwise)


PAUSED = Badge(Level.WARN, "paused", _("paused"))
WORKING = Badge(Level.OK, "working", _("at work"))
IDLE = Badge(Level.IDLE, "idle", _("nothing to do"))
ALIVE = Badge(Level.OK, "alive", _("alive"))
NO_CONTACT = Badge(Level.BAD, "lost_contact", _("lost contact"))

EXPIRED = Badge(Level.BAD, "expired", _("expired"))
LIVE = Badge(Level.BUSY, "live", _("live"))
HAS_READER = Badge(Level.BUSY, "has_reader", _("has a reader"))
NO_READER = Badge(Level.WARN, "no_reader", _("no reader"))

_OF_RESOURCES = {
    State.FREE: Level.OK,
    State.LEASED: Level.BUSY,
    State.DRAINING: Level.WARN,
    State.QUARANTINED: Level.BAD,
    State.OUT: Level.BAD,
}
_OF_WORK = {"running": Level.BUSY, "assigned": Level.BUSY, "done": Level.OK}


def resource_badge(state: State) -> Badge:
    return Badge(_OF_RESOURCES.get(state, Level.IDLE), state.value, state.label)


def work_badge(row: Any, *, late: bool = False) -> Badge:
    """Return the state of a task or timer; ``late``: it should have begun long ago."""
    failed = late or row.state in row.failed_states
    level = Level.BAD if failed else _OF_WORK.get(row.state, Level.IDLE)
    return Badge(level, row.state, _("late") if late else row.get_state_display())

"""How locks and their relatives stand, as text; 80 columns are enough for short names."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from resourcepool.management.layout import name_value_lines, one_line, or_dash
from resourcepool.management.tables import Column, table
from resourcepool.status.locks.cycles import Cycle, cycles, short_holder
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import ActiveLease, LockStatus
from resourcepool.status.snapshots import duration

HOLDER = 26  # characters


def _held(one: LockStatus) -> str:
    return f"{one.held:,}/{one.permits:,}" if one.kind.is_held else "-"


def _first(one: LockStatus) -> str:
    if one.kind is LockKind.BARRIER:
        return _("stands") if one.stands else _("removed")
    if not one.kind.is_held:
        return ngettext("%d notified", "%d notified", one.held) % one.held if one.held else "-"
    return short_holder(one.in_use[0].holder) if one.in_use else "-"


def _left(one: ActiveLease) -> str:
    left = duration(one.expires_in)
    return _("%s; waits for more") % left if one.is_waiting else left


COLUMNS = (
    Column(gettext_lazy("kind"), lambda one: one.kind.value),
    Column(gettext_lazy("name"), lambda one: one.name, widest=24),
    Column(gettext_lazy("held"), _held, is_number=True),
    Column(gettext_lazy("holder"), _first, widest=HOLDER),
    Column(gettext_lazy("waiters"), lambda one: one.waiters, is_number=True),
    Column(gettext_lazy("longest wait"), lambda one: or_dash(one.longest_wait, duration)),
)
HOLDERS = (
    Column(gettext_lazy("holder"), lambda one: one.holder, widest=46),
    Column(gettext_lazy("permits"), lambda one: one.permits, is_number=True),
    Column(gettext_lazy("fence"), lambda one: one.fence, is_number=True),
    Column(gettext_lazy("expires in"), _left),
)
NOTIFIED = (HOLDERS[0], HOLDERS[-1])
LINE = (
    Column(gettext_lazy("holder"), lambda one: one.holder, widest=46),
    Column(gettext_lazy("permits"), lambda one: one.permits, is_number=True),
    Column(gettext_lazy("priority"), lambda one: one.priority, is_number=True),
    Column(gettext_lazy("waits for"), lambda one: duration(one.waited)),
)


HELD_BY_PROCESS = (
    Column(gettext_lazy("kind"), lambda one: one.kind.value),
    Column(gettext_lazy("name"), lambda one: one.name, widest=24),
    Column(gettext_lazy("permits"), lambda one: one.permits, is_number=True),
    Column(gettext_lazy("holder"), lambda one: one.who, widest=HOLDER),
    Column(gettext_lazy("process"), lambda one: one.process),
)


def locks_as_text(found: Sequence[LockStatus], circles: Sequence[Cycle]) -> list[Any]:
    """Return a table of these, and below it the circles, wherever they are."""
    if not found:
        return [_("There is none.")]
    return [table(found, COLUMNS), *(["", *cycles_as_text(circles)] if circles else [])]


def full_report(found: Sequence[LockStatus]) -> tuple[dict[str, Any], Iterator[Any]]:
    """Return these and the circles that are about them, as data, and all that is known of them, as text."""
    circles = [one for one in cycles() if any(one.is_about(lock.kind, lock.name) for lock in found)]
    return {"locks": found, "cycles": circles}, _full_report(found, circles)


def _full_report(found: Iterable[LockStatus], circles: Sequence[Cycle]) -> Iterator[Any]:
    for number, one in enumerate(found):
        if number:
            yield ""
        yield one_line(one.called, 250)
        yield name_value_lines((f"{name}:", value) for name, value in _facts(one))
        if one.holders:
            head = _("It is held by:") if one.kind.is_held else _("Notified, and not back yet:")
            yield from ["", head, table(one.holders, HOLDERS if one.kind.is_held else NOTIFIED)]
        if one.line:
            yield from ["", _("In line, the first to be served first:"), table(one.line, LINE)]
        about = [circle for circle in circles if circle.is_about(one.kind, one.name)]
        if about:
            yield from ["", *cycles_as_text(about)]


def cycles_as_text(found: Sequence[Cycle]) -> Iterator[Any]:
    if not found:
        yield _("There is no circle of waiters.")
    for one in found:
        head = _("A deadlock, for %s:") if one.is_certain else _("A circle that may end by itself, for %s:")
        yield head % duration(one.lasts)
        yield from (f"  {one_line(link, None)}" for link in one.links)


def _facts(one: LockStatus) -> Iterator[tuple[str, object]]:
    yield _("state"), state_sentence(one)
    if one.stands:
        yield _("put up by"), one_line(one.stands, 250)
    if one.kind.is_held:
        yield _("held"), _held(one)
        yield _("fence"), one.fence
    else:
        yield _("notified"), f"{one.held:,}"
    yield _("waiters"), f"{one.waiters:,}"
    if one.longest_wait is not None:
        yield _("longest wait"), duration(one.longest_wait)


def state_sentence(one: LockStatus) -> str:
    """Return in a sentence why it can, or cannot, be acquired."""
    if one.kind is LockKind.BARRIER:
        stands = _("It stands: whoever waits goes on when somebody removes it.")
        return stands if one.stands else _("It does not stand: nobody waits before it for long.")
    if one.kind is LockKind.CONDITION:
        return _("It is waited for until somebody notifies.") if one.waiters else _("Nobody waits for it.")
    free = one.permits - one.held
    if not one.permits and not one.held:
        return _("It has no permits: whoever asks waits until somebody resizes it.")
    if one.held > one.permits:
        return _(
            "More permits are held than there are now; those too many are not handed out again after their release."
        )
    if one.waiters and free > 0:
        return _("Some of it is free; whoever is first in line is served in a moment, or wants more than that.")
    if free > 0:
        return _("It is free: whoever asks next gets it.")
    return _("It is held; it comes free when it is released, or when a lease runs out without a renewal.")

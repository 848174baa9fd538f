"""The status of locks as text, in 80 columns if names are short."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from resourcepool.management.layout import Column, name_value_lines, one_line, or_dash, table
from resourcepool.status.locks.cycles import Cycle, cycles, short_holder
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockHolder, LockStatus
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _, gettext_lazy, ngettext

HOLDER = 26  # characters


def _held(one: LockStatus) -> str:
    return f"{one.held:,}/{one.permits:,}" if one.kind.is_held else "-"


def _first(one: LockStatus) -> str:
    if one.kind is LockKind.BARRIER:
        return _("blocking") if one.creator else _("removed")
    if not one.kind.is_held:
        return ngettext("%d notified", "%d notified", one.held) % one.held if one.held else "-"
    return short_holder(one.in_use[0].holder) if one.in_use else "-"


def _left(one: LockHolder) -> str:
    left = duration(one.expires_in)
    return _("%s; waiting for more") % left if one.is_waiting else left


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
    Column(gettext_lazy("waiting for"), lambda one: duration(one.waited)),
)


HELD_BY_PROCESS = (
    Column(gettext_lazy("kind"), lambda one: one.kind.value),
    Column(gettext_lazy("name"), lambda one: one.name, widest=24),
    Column(gettext_lazy("permits"), lambda one: one.permits, is_number=True),
    Column(gettext_lazy("holder"), lambda one: one.who, widest=HOLDER),
    Column(gettext_lazy("process"), lambda one: one.process),
)


def locks_as_text(statuses: Sequence[LockStatus], wait_cycles: Sequence[Cycle]) -> list[Any]:
    """Return a table, followed by the wait cycles if there are any."""
    if not statuses:
        return [_("No names found.")]
    return [table(statuses, COLUMNS), *(["", *cycles_as_text(wait_cycles)] if wait_cycles else [])]


def full_report(statuses: Sequence[LockStatus]) -> tuple[dict[str, Any], Iterator[Any]]:
    """Return these statuses and the wait cycles about them, as data and as text."""
    about = [
        cycle for cycle in cycles() if any(cycle.is_about(status.kind, status.name) for status in statuses)
    ]
    return {"locks": statuses, "cycles": about}, _full_report(statuses, about)


def _full_report(statuses: Iterable[LockStatus], wait_cycles: Sequence[Cycle]) -> Iterator[Any]:
    for number, status in enumerate(statuses):
        if number:
            yield ""
        yield one_line(status.called, 250)
        yield name_value_lines((f"{name}:", value) for name, value in _facts(status))
        if status.holders:
            head = _("Holders:") if status.kind.is_held else _("Notified, not yet continued:")
            yield from ["", head, table(status.holders, HOLDERS if status.kind.is_held else NOTIFIED)]
        if status.line:
            yield from ["", _("Waiters in order:"), table(status.line, LINE)]
        about = [cycle for cycle in wait_cycles if cycle.is_about(status.kind, status.name)]
        if about:
            yield from ["", *cycles_as_text(about)]


def cycles_as_text(wait_cycles: Sequence[Cycle]) -> Iterator[Any]:
    if not wait_cycles:
        yield _("No wait cycle.")
    for cycle in wait_cycles:
        head = _("Deadlock for %s:") if cycle.is_certain else _("Possible deadlock (may resolve) for %s:")
        yield head % duration(cycle.lasts)
        yield from (f"  {one_line(link, None)}" for link in cycle.links)


def _facts(status: LockStatus) -> Iterator[tuple[str, object]]:
    yield _("state"), state_sentence(status)
    if status.creator:
        yield _("created by"), one_line(status.creator, 250)
    if status.kind.is_held:
        yield _("held"), _held(status)
        yield _("fence"), status.fence
    else:
        yield _("notified"), f"{status.held:,}"
    yield _("waiters"), f"{status.waiters:,}"
    if status.longest_wait is not None:
        yield _("longest wait"), duration(status.longest_wait)


def state_sentence(status: LockStatus) -> str:
    """Return in a sentence why it can or cannot be acquired."""
    if status.kind is LockKind.BARRIER:
        up = _("Barrier is up; waiters continue when it is removed.")
        return up if status.creator else _("Barrier is down; wait() returns at once.")
    if status.kind is LockKind.CONDITION:
        return _("Waiters block until notify() is called.") if status.waiters else _("No waiters.")
    free = status.permits - status.held
    if not status.permits and not status.held:
        return _("No permits: all requests wait until it is resized.")
    if status.held > status.permits:
        return _("More permits are held than exist now; the surplus is not granted again after its release.")
    if status.waiters and free > 0:
        return _("Permits are free: the first waiter gets them in a moment, or needs more than these.")
    if free > 0:
        return _("Free: the next request gets it.")
    return _("Held: it becomes free when it is released, or when a lease expires without a renewal.")

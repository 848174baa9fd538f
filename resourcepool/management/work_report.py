"""The status of systems with named rows, and of tasks and timers, as text."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from resourcepool.management.layout import one_line
from resourcepool.management.tables import columns, table
from resourcepool.status.system import NamedSystem
from resourcepool.status.work.pages import FIGURES, WorkPage
from resourcepool.text import natural_key
from resourcepool.translation import gettext as _


def statuses_as_text(system: NamedSystem, statuses: Sequence[Any]) -> list[Any]:
    """Return a table of the rows of a system, and why nothing happens in them."""
    if not statuses:
        return [_(system.none_yet)]
    parts: list[Any] = [table(_sorted(statuses, "name"), columns(system.figures))]
    if len(statuses) == 1 and system.parts and (rows := getattr(statuses[0], system.parts[0])):
        parts += ["", table(rows, columns(system.parts[1]))]
    reasons = [one_line(f"{one.name}: {one.explanation}", None) for one in statuses if one.explanation]
    return [*parts, *(["", *reasons] if reasons else [])]


def _sorted(rows: Sequence[Any], name: str) -> list[Any]:
    """Return the rows of a page, "req-2" before "req-10"; the database orders the pages by plain text."""
    return sorted(rows, key=lambda row: natural_key(getattr(row, name)))


def work_as_text(model: Any, page: WorkPage, words: str) -> list[Any]:
    """Return a table of tasks or timers; ``words``: the command's arguments that show this page."""
    rows = _sorted(page.work, model.key_columns[1])
    shown = table(rows, columns(FIGURES[model])) if rows else _("There are none.")
    return [shown, *next_page_hint(words, page.after)]


def next_page_hint(words: str, after: str) -> Iterator[str]:
    """Yield the arguments for the next page, if there is one; ``words``: the arguments of this page."""
    if after:
        yield ""
        yield _("There are more: %s") % f"{words} --after {shlex.quote(one_line(after, None))}"

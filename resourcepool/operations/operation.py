"""An operation, declared once for the admin, the commands and the REST API: its input fields, and its result."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from django.db import DatabaseError, InterfaceError, connections
from django.utils.text import capfirst

from resourcepool import options
from resourcepool.db.retry import retrying
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, Hidden, ResourcePoolError, RowLocked
from resourcepool.resources.queryset import MAX_DURATION
from resourcepool.resources.state import MAX_REASON, State, Status
from resourcepool.text import join_names
from resourcepool.translation import gettext, gettext_lazy, gettext_noop as _

MAX_ROWS = 10_000  # more events at once would overflow the history


@dataclass(frozen=True, kw_only=True)
class TextField:
    """One line of text.

    Attributes:
        max_length: the maximum number of characters.
        is_required: whether "" is refused.
        error_for: returns an error message for a line that is not allowed, otherwise "".
        is_own_name: pages fill in the name of the operator.
    """

    name: str
    label: Any
    help: Any = ""
    max_length: int
    is_required: bool = True
    error_for: Callable[[str], str] = lambda _line: ""
    is_own_name: bool = False

    @property
    def option(self) -> str:
        """The option of commands."""
        return f"--{self.name}"

    def clean(self, value: Any, *, is_required: bool = True) -> str:
        """Return the line; raises BadOption."""
        # Before the check of its length, so that for 20 digits the error is about numbers.
        is_checked = isinstance(value, str) and (value or not is_required)
        if is_checked and (wrong := self.error_for(value[: self.max_length + 1])):
            raise BadOption(self.name, value, wrong)
        if value:
            return options.text(self.option, value, most=self.max_length)
        if self.is_required and is_required:
            why = Sentence(_("required, one line of 1 to %(count)s characters"), count=self.max_length)
            raise BadOption(self.option, Hidden(), because=why)
        return ""


@dataclass(frozen=True, kw_only=True)
class DurationField:
    """A duration from a second to 30 days; None, if it is not required: until further notice."""

    name: str = "duration"
    label: Any
    help: Any = ""
    is_required: bool = False
    option = "--for"

    def clean(self, value: Any, *, is_required: bool = True) -> float | None:
        """Return the seconds; raises BadOption."""
        if value is None and self.is_required and is_required:
            raise BadOption(self.option, Hidden(), because=Sentence(_("required, in seconds")))
        if value is None:
            return None
        return options.seconds(self.option, value, least=1, most=MAX_DURATION)


Field = TextField | DurationField

REASON = TextField(
    name="reason",
    label=gettext_lazy("Reason"),
    max_length=MAX_REASON,
    help=gettext_lazy("One line, kept in the history. Everyone who may see this list can read it."),
)


@dataclass(kw_only=True)
class Applied:
    """The result of an operation on some rows.

    Attributes:
        operation: the ``Operation``.
        found: the number of rows that it was to change.
        changed: the number of rows that it changed.
        deferred: how many of these change only when their lease ends.
        repeated: how many of these were in the new state before.
        rows: the rows in parts that were changed, as they were before; empty unless they are logged.
        warnings: sentences about the result.
        errors: why rows were not changed. After an error other than RowLocked, the state of the others is unknown.
    """

    operation: Any
    found: int
    changed: int = 0
    deferred: int = 0
    repeated: int = 0
    rows: list[Any] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    @property
    def skipped(self) -> int:
        """The number of rows that were not changed."""
        return max(0, self.found - self.changed)

    @property
    def is_known(self) -> bool:
        """Whether the skipped rows are certainly unchanged."""
        return all(isinstance(error, RowLocked) for error in self.errors)

    @property
    def skipped_message(self) -> str:
        """The message about the skipped rows, if there was no error; "" if none was skipped."""
        return str(self.operation.skipped_message % {"count": self.skipped}) if self.skipped else ""

    def done_messages(self, model: Any, names: Sequence[str]) -> list[str]:
        """Return the messages about the changed rows of ``model``; ``names``: their names, or those of all rows."""
        about, texts = self.operation, []
        done = self.changed - self.deferred - self.repeated
        for text, count in (
            (about.done_message, done),
            (about.deferred_message, self.deferred),
            (about.repeated_message, self.repeated),
        ):
            if count:
                what = described(model, count, names if self.found == 1 else ())
                texts.append(capfirst(str(text % {"count": count, "what": what, "names": join_names(names)})))
        return texts

    def or_raise(self, *, even_if_locked: bool = True) -> Self:
        """Return this result; raises its last error."""
        if self.errors and (even_if_locked or not self.is_known):
            raise self.errors[-1]
        return self


def described(model: Any, count: int, names: Sequence[object] = ()) -> str:
    """Return changed rows in words: "stream orders" if ``names`` has that name alone, otherwise "3 streams"."""
    words = model._meta
    if count == len(names) == 1:
        return f"{words.verbose_name} {names[0]}"
    noun = words.verbose_name if count == 1 else words.verbose_name_plural
    return gettext("%(count)s %(noun)s") % {"count": f"{count:,}", "noun": noun}


SKIPPED = gettext_lazy("%(count)d skipped.")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One kind of change.

    Attributes:
        name: its name in URLs, admin actions and commands.
        button, title: its label, and the label with a short explanation.
        effect: its effect on running leases, for an operator who has never used it.
        permission: the required permission of the model.
        fields: the input fields.
        applicable: narrows rows to those that it would change.
        bulk_targets: the same for rows selected by a filter instead of one by one; None: as ``applicable``.
        do: makes the change, given rows, ``actor`` and the values of the fields by name; returns the number of changed
            rows.
        done_message, skipped_message: messages about the changed rows, with ``count`` and ``what`` (see ``described``),
            and about the others, with ``count``; may be plural.
        deferred_message: the message about changed rows whose lease still runs; None: the operation does not wait for
            the end of leases.
        repeated_message: the message about changed rows that had ``status`` and were out of service before; None: they
            count as the others.
        status: the status of these rows.
        states: the states in which the page of a resource offers it; empty: no page does.
        is_for: whether a model supports it.
        is_offered: whether the page of a resource in one of ``states`` offers it.
        is_destructive: it cannot be undone; its button looks like that.
        is_harmless: a button on a page runs it at once, without a confirmation; it needs no value of a field.
        for_current_lease: it affects only the lease that the operator saw, not a later one of the same resource.
        max_rows: the maximum number of rows that a page changes at once; more would block the web server for too long.
    """

    name: str
    button: Any
    title: Any
    effect: Any
    permission: str = "operate"
    fields: tuple[Field, ...] = ()
    applicable: Callable[[Any], Any] = lambda rows: rows
    bulk_targets: Callable[[Any], Any] | None = None
    do: Callable[..., Any]
    done_message: Any
    skipped_message: Any = SKIPPED
    deferred_message: Any = None
    repeated_message: Any = None
    status: Status | None = None
    states: Collection[State] = tuple(State)
    is_for: Callable[[Any], bool] = lambda model: True
    is_offered: Callable[[Any], bool] = lambda resource: True
    is_destructive: bool = False
    is_harmless: bool = False
    for_current_lease: bool = False
    max_rows: int = MAX_ROWS

    def clean(self, values: Mapping[str, Any], *, is_required: bool = True) -> dict[str, Any]:
        """Return the value of each field, by its name.

        Args:
            values: what the operator entered, by the names of the fields.
            is_required: False for a dry run, which needs no values.

        Raises:
            BadOption: a value is not allowed; it names the field as commands do.
        """
        return {
            field.name: field.clean(values.get(field.name), is_required=is_required) for field in self.fields
        }

    def targets(self, rows: Any, *, by_id: bool = True) -> Any:
        """Return the rows to change; ``by_id``: the operator selected them one by one."""
        return (self.applicable if by_id else self.bulk_targets or self.applicable)(rows)

    def apply(
        self,
        parts: Iterable[Any],
        answers: Mapping[str, Any],
        *,
        actor: str,
        found: int,
        by_id: bool = True,
        log: Callable[[list[Any]], object] | None = None,
    ) -> Applied:
        """Change the ``targets`` in one part of the rows after the other, until an error other than RowLocked.

        Args:
            parts: querysets of the selected rows.
            answers: the values of the fields, from ``clean``.
            actor: the operator, for the history.
            found: the number of selected rows; those that are not changed count as skipped. 0: nothing is done.
            by_id: see ``targets``.
            log: called with the targets of each part in which some were changed.
        """
        applied = Applied(operation=self, found=found)
        for part in parts if found else ():
            affected, changed, held, again = list[Any](), 0, 0, 0
            try:
                rows = self.targets(part, by_id=by_id)
                affected = list(rows) if log else []
                held, again = self._counts(rows)
                changed = self.run(rows, answers, actor)
                applied.warnings += self.warnings_about(rows, answers)
            except (ResourcePoolError, DatabaseError, InterfaceError) as error:
                applied.errors.append(error)
                changed = changed or getattr(error, "done", 0)
                held = self._deferred(part) if held and isinstance(error, RowLocked) else held
            applied.changed += changed
            repeated = min(changed, again)
            applied.repeated += repeated
            applied.deferred += min(changed - repeated, held)
            if log and changed:
                applied.rows += affected
                log(affected)
            if not applied.is_known:
                break
        return applied

    def run(self, rows: Any, answers: Mapping[str, Any], actor: str) -> int:
        """Change ``rows``; returns the number of changed rows."""
        return int(self.do(rows, actor=actor, **answers))

    def warnings_about(self, rows: Any, answers: Mapping[str, Any]) -> Iterable[str]:
        """Return sentences about the result of the operation on ``rows``."""
        return ()

    def _counts(self, rows: Any) -> tuple[int, int]:
        """Return how many of ``rows`` will change when their lease ends, and how many are in the new state already."""
        if not self.deferred_message:
            return 0, 0
        connection, again = connections[rows.db], 0
        if self.repeated_message:
            again = retrying(connection, rows.filter(in_service=False, status=self.status).count)
            rows = rows.exclude(in_service=False, status=self.status) if again else rows
        return retrying(connection, rows.held().count), again

    def _deferred(self, rows: Any) -> int:
        """Return how many of ``rows``, of which some were locked, change when their lease ends."""
        with contextlib.suppress(DatabaseError, InterfaceError):
            return int(rows.draining().filter(status=self.status).count())
        return 0


def retried(change: Callable[..., int]) -> Callable[..., int]:
    """Return ``change``, a method of querysets, repeated after transient errors of the database."""

    def run(rows: Any, **given: Any) -> int:
        return retrying(connections[rows.db], partial(change, rows, **given))

    return run


def by_name(*operations: Operation) -> dict[str, Operation]:
    """Return these operations by name."""
    return {operation.name: operation for operation in operations}

"""Examines one database: its problems and its speed."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases.table import Model
from resourcepool.safety import measurements
from resourcepool.safety.diagnosis import diagnose, error_text
from resourcepool.safety.measurements import Commits, Distance, Leases, Tickets
from resourcepool.safety.plans import Statement, statements
from resourcepool.safety.problem import Problem, problem
from resourcepool.safety.rules import passed
from resourcepool.waiting.models import Ticket

Measured = TypeVar("Measured")

MANY_ORPHANS = 1_000


@dataclass(slots=True)
class Examination:
    """The result of one examination; None: not measured.

    Attributes:
        server: name and version of the database; "" if it did not answer.
        passed: the facts that are as required, as sentences.
    """

    database: str
    server: str = ""
    findings: list[Problem] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    distance: Distance | None = None
    commits: Commits | None = None
    statements: list[Statement] | None = None
    leases: list[Leases] | None = None
    tickets: Tickets | None = None


def examine(alias: str, *, write: bool = True) -> Examination:
    """Examine a database on a separate connection with the session settings of the project.

    Args:
        write: also measure commits, on a ticket that is removed afterwards.
    """
    if not dialect.supports(connections[alias]):
        return Examination(alias, findings=diagnose(connections[alias]).problems)
    with _probe(alias) as connection:
        diagnosis = diagnose(connection)
        examined = Examination(alias, diagnosis.product, diagnosis.problems)
        if diagnosis.facts is None or diagnosis.tables is None:
            return examined
        examined.passed = passed(diagnosis.facts)
        tables = diagnosis.tables
        examined.findings += [_missing(alias, model) for model, table in tables.items() if table is None]
        dialect.limit_lock_waits(connection)
        _measure(connection, examined, [model for model, table in tables.items() if table], write=write)
    return examined


def _measure(
    connection: BaseDatabaseWrapper, examined: Examination, models: list[Model], *, write: bool
) -> None:
    def part(what: str, measure: Callable[[], Measured], *, is_unsafe_warning: bool = False) -> Measured | None:
        try:
            return measure()
        except (DatabaseError, InterfaceError, ResourcePoolError) as error:
            where, why = f"database {examined.database!r}", error_text(connection, error)
            examined.findings.append(
                problem("W022", where, is_unsafe_warning=is_unsafe_warning, what=what, why=why)
            )
            return None

    examined.distance = part("the clock", lambda: measurements.measure_distance(connection))
    examined.statements = part("the plans", lambda: statements(connection, models))
    examined.leases = part("the leases", lambda: measurements.leases(connection, models))
    if Ticket in models:
        examined.tickets = part("the tickets", lambda: measurements.tickets(connection))
        if write:
            examined.commits = part(
                "a commit", lambda: measurements.commits(connection), is_unsafe_warning=True
            )
    examined.findings += [
        problem("W023", statement.model, name=statement.name, problem=statement.problem)
        for statement in examined.statements or ()
        if statement.problem
    ]
    if examined.tickets and examined.tickets.orphaned >= MANY_ORPHANS:
        examined.findings.append(problem("W024", Ticket._meta.label, count=f"{examined.tickets.orphaned:,}"))


def _missing(alias: str, model: Model) -> Problem:
    # Reported by the doctor only: normal before the first ``migrate``.
    names = {"table": model._meta.db_table, "alias": alias}
    return problem("W021", model._meta.label, is_unsafe_warning=model._meta.managed, **names)


@contextlib.contextmanager
def _probe(alias: str) -> Iterator[BaseDatabaseWrapper]:
    """Replace this thread's connection to ``alias`` inside the block."""
    original = connections[alias]
    connections[alias] = connection = dialect.private_connection(alias, has_lock_limit=False)
    try:
        yield connection
    finally:
        connections[alias] = original
        dialect.discard(connection)

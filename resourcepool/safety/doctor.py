"""Examines one database: its problems and its speed."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
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
    """What was found; None: not measured.

    Attributes:
        server: name and version of the database; "": it did not answer.
        passed: the facts that were found right, as sentences.
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
    """Examine a database, on a connection of its own with the session settings of the project's.

    Args:
        write: measure commits, too, on a ticket that is removed afterwards.
    """
    if not dialect.supports(connections[alias]):
        return Examination(alias, findings=diagnose(connections[alias]).problems)
    with _probe(alias) as connection:
        seen = diagnose(connection)
        examined = Examination(alias, seen.product, seen.problems)
        if seen.facts is None or seen.tables is None:
            return examined
        examined.passed = passed(seen.facts)
        examined.findings += [_missing(alias, model) for model, made in seen.tables.items() if made is None]
        dialect.limit_lock_waits(connection)
        _measure(connection, examined, [model for model, made in seen.tables.items() if made], write=write)
    return examined


def _measure(
    connection: BaseDatabaseWrapper, examined: Examination, there_are: list[Model], *, write: bool
) -> None:
    def part(what: str, measure: Callable[[], Measured], *, voids: bool = False) -> Measured | None:
        try:
            return measure()
        except (DatabaseError, InterfaceError, ResourcePoolError) as error:
            where, why = f"database {examined.database!r}", error_text(connection, error)
            examined.findings.append(problem("W022", where, voids=voids, what=what, why=why))
            return None

    examined.distance = part("the clock", lambda: measurements.measure_distance(connection))
    examined.statements = part("the plans", lambda: statements(connection, there_are))
    examined.leases = part("the leases", lambda: measurements.leases(connection, there_are))
    if Ticket in there_are:
        examined.tickets = part("the tickets", lambda: measurements.tickets(connection))
        if write:
            examined.commits = part("a commit", lambda: measurements.commits(connection), voids=True)
    examined.findings += [
        problem("W023", one.model, name=one.name, problem=one.problem)
        for one in examined.statements or ()
        if one.problem
    ]
    if examined.tickets and examined.tickets.orphaned >= MANY_ORPHANS:
        examined.findings.append(problem("W024", Ticket._meta.label, count=f"{examined.tickets.orphaned:,}"))


def _missing(alias: str, model: Model) -> Problem:
    # Only for the doctor: before the first ``migrate`` this is normal.
    names = {"table": model._meta.db_table, "alias": alias}
    return problem("W021", model._meta.label, voids=model._meta.managed, **names)


@contextlib.contextmanager
def _probe(alias: str) -> Iterator[BaseDatabaseWrapper]:
    """Give this thread another connection to ``alias`` inside the block."""
    usual = connections[alias]
    connections[alias] = connection = dialect.private_connection(alias, has_lock_limit=False)
    try:
        yield connection
    finally:
        connections[alias] = usual
        dialect.discard(connection)

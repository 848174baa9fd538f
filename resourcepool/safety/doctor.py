"""Examines one database: its problems, its speed, and the query plans of the frequent statements.

The plans depend on the models, indexes and statistics of the project. Each statement is captured on its way to the
database.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.dialect.statement import ANY_ROW
from resourcepool.db.inspection import QueryPlan, inspector
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases import free_rows, verbs
from resourcepool.leases.models import Model
from resourcepool.leases.terms import Terms
from resourcepool.models import AbstractResource, Proxy
from resourcepool.safety import measurements
from resourcepool.safety.diagnosis import diagnose, error_text, passed
from resourcepool.safety.measurements import Commits, Distance, Leases, Tickets
from resourcepool.safety.problem import Problem, problem
from resourcepool.waiting import tickets
from resourcepool.waiting.models import Ticket

BIG = 1_000  # rows; larger tables are slow to read or sort completely
MANY = 20  # leases renewed in one statement
BY_KEY = ("claim", "release", "renew one", "renew many")
PLACEHOLDER_KEYS: dict[str, Any] = {"UUIDField": UUID(int=0), "CharField": "", "TextField": ""}

Measured = TypeVar("Measured")

MANY_ORPHANS = 1_000


@dataclass(frozen=True, slots=True)
class Statement:
    """A frequent statement, the indexes it uses, and the problem with its plan, if any."""

    model: str
    name: str
    uses: tuple[str, ...]
    problem: str | None


def statements(connection: BaseDatabaseWrapper, leased: Sequence[Model]) -> list[Statement]:
    """Return the frequent statements on these models with their plans; runs none of them."""
    # Counted up to a limit: a full count of a large table would take minutes.
    counts = {model: verbs.rows_of(connection, model).order_by()[: BIG + 1].count() for model in leased}
    big = {model._meta.db_table for model, count in counts.items() if count > BIG}
    checked = []
    for model in leased:
        for name, send in _frequent_statements(connection, model):
            plan = inspector(connection).explain(*capture_statement(connection, send))
            uses = dict.fromkeys(step.index for step in plan.steps if step.index)
            problem = judge_plan(plan, big, model._meta.db_table if name in BY_KEY else None)
            checked.append(Statement(model._meta.label, name, tuple(uses), problem))
    return checked


def judge_plan(plan: QueryPlan, big: Collection[str], keyed: str | None = None) -> str | None:
    """Return the problem with a plan, if any.

    Args:
        big: the tables with more than ``BIG`` rows.
        keyed: the table whose rows must be found by primary key.
    """
    for step in plan.steps:
        if step.index is None and (plan.is_forced or step.table in big):
            return f"reads all of {step.table}"
        if step.table == keyed and step.table in big and not step.by_key:
            return f"finds its row by {step.index} instead of the primary key"
    sorts = plan.sorts and (plan.is_forced or any(step.table in big for step in plan.steps))
    return "sorts many rows" if sorts else None


def capture_statement(connection: BaseDatabaseWrapper, send: Callable[[], object]) -> tuple[str, Sequence[Any]]:
    """Return the first statement that ``send`` would send, and its parameters, without sending it."""
    try:
        # Rolls back a statement that is sent after all.
        with transaction.atomic(using=connection.alias), connection.execute_wrapper(_catch):
            send()
            transaction.set_rollback(True, using=connection.alias)
    except _Caught as statement:
        sql, params = statement.args
        return sql, params
    raise AssertionError(f"{send} sent nothing")


def _frequent_statements(
    connection: BaseDatabaseWrapper, model: Model
) -> Iterator[tuple[str, Callable[[], object]]]:
    keys = _some_keys(connection, model)
    held = [(pk, 1) for pk in keys]
    is_resource = issubclass(model, AbstractResource)
    terms = Terms(ttl=60, holder="resourcepool_doctor")
    if is_resource:
        yield "find free rows", lambda: free_rows.candidates(connection, model, ANY_ROW, 64)
        yield "find free rows while waiting", lambda: free_rows.read_free_rows(connection, model, ANY_ROW, 9)
    if model is Ticket:
        yield "read waiters", lambda: tickets.in_line(connection, Proxy)
        yield "read tickets", lambda: tickets.look(connection, keys)
    else:
        yield "claim", lambda: verbs.claim(connection, model, keys[0], terms)
        yield "release", lambda: verbs.release_all(connection, model, held[:1], 0)
    yield "renew one", lambda: verbs.renew(connection, model, held[:1], 60)
    yield "renew many", lambda: verbs.renew(connection, model, held, 60)


def _some_keys(connection: BaseDatabaseWrapper, model: Model) -> list[Any]:
    keys = list(verbs.rows_of(connection, model).order_by("pk").values_list("pk", flat=True)[:MANY])
    pk: Any = model._meta.pk
    return keys if len(keys) > 1 else [*keys, PLACEHOLDER_KEYS.get(pk.get_internal_type(), 1)] * 2


class _Caught(Exception):
    pass


def _catch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> NoReturn:
    raise _Caught(sql, params)


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

"""The query plans of the frequent statements.

They depend on the models, indexes and statistics of the project. Each statement is captured on its way to the database.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import UUID

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.dialect.statement import ANY_ROW
from resourcepool.db.inspection import QueryPlan, inspector
from resourcepool.leases import free_rows, verbs
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Terms
from resourcepool.models import AbstractResource, Proxy, Ticket
from resourcepool.waiting import tickets

BIG = 1_000  # rows; larger tables are slow to read or sort completely
MANY = 20  # leases renewed in one statement
BY_KEY = ("claim", "release", "renew one", "renew many")
PLACEHOLDER_KEYS: dict[str, Any] = {"UUIDField": UUID(int=0), "CharField": "", "TextField": ""}


@dataclass(frozen=True, slots=True)
class Statement:
    """A frequent statement, the indexes it uses, and the problem with its plan, if any."""

    model: str
    name: str
    uses: tuple[str, ...]
    problem: str | None


def statements(connection: BaseDatabaseWrapper, leased: Sequence[Model]) -> list[Statement]:
    """Return the frequent statements on these models with their plans; runs none of them."""
    big = {model._meta.db_table for model in leased if _is_big(connection, model)}
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


def _is_big(connection: BaseDatabaseWrapper, model: Model) -> bool:
    # A full count of a large table would take minutes.
    return verbs.rows_of(connection, model).order_by()[: BIG + 1].count() > BIG


class _Caught(Exception):
    pass


def _catch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> NoReturn:
    raise _Caught(sql, params)

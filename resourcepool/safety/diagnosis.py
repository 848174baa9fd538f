"""The requirements on a database server, and the problems of one database, found without changing anything.

``problem.TEXTS`` gives the reasons.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import not_
from typing import Any, NamedTuple

from django.apps import apps
from django.db import DatabaseError, InterfaceError, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.views.decorators.debug import sensitive_variables

from resourcepool.db import dialect
from resourcepool.db.dialect import KeyField
from resourcepool.db.inspection import TableFacts, inspector
from resourcepool.db.timeouts import StatementAttempt, statement_timeout
from resourcepool.leases.models import Model, inherited_from
from resourcepool.models import AbstractLease, AbstractResource
from resourcepool.safety.problem import Problem, problem
from resourcepool.text import UnicodeCollationMixin
from resourcepool.waiting.models import Ticket

MAX_LOCK_WAIT = 10  # seconds
MAX_IDLE = 600  # seconds
MIN_BUSY_TIMEOUT = 5  # seconds
PAGE_SIZE = 16_384  # bytes; with smaller pages the entries of an index are shorter
RELAXED = ("read committed", "read uncommitted")


class Rule(NamedTuple):
    """The database server has the problem ``code`` if ``is_broken(facts[fact])``.

    Attributes:
        case: selects the text of the problem; default: the name of the fact.
    """

    code: str
    fact: str
    is_broken: Callable[[Any], bool]
    case: str = ""

    def problem(self, about: str, value: Any) -> Problem:
        """Return the problem for this value."""
        return problem(self.code, about, self.case or self.fact, fact=self.fact, value=_shown(value))


def _words(level: str) -> str:
    return level.lower().replace("-", " ")


def _is_off(value: str) -> bool:
    return value == "off"


def _is_long_idle(seconds: float) -> bool:
    return seconds == 0 or seconds > MAX_IDLE


RULES = (
    Rule("W010", "TEST MIRROR", bool),
    Rule("E007", "read_only", bool),
    Rule("E010", "AUTOCOMMIT", not_),
    Rule("E013", "TIME_ZONE", lambda zone: zone not in ("UTC", "Etc/UTC")),
    Rule("W003", "transaction_isolation", lambda level: _words(level) not in RELAXED),
    # MariaDB and MySQL
    Rule("E004", "mariadb", lambda version: version < (10, 6)),
    Rule("E004", "mysql", lambda version: version < (8, 0, 11)),
    Rule("E005", "counts_matched_rows", not_),
    Rule("E009", "transaction_isolation", lambda level: _words(level) == "read uncommitted"),
    # MariaDB's 3 flushes even more often than 1.
    Rule("W004", "innodb_flush_log_at_trx_commit", lambda value: value == 0),
    Rule("W004", "innodb_flush_log_at_trx_commit", lambda value: value == 2, case="power"),
    Rule("W005", "sync_binlog", lambda value: value != 1),
    Rule("W006", "wsrep_on", bool),
    Rule("W009", "replicates", bool),
    Rule("E018", "character_set_client", lambda name: name != "utf8mb4"),
    Rule("W038", "character_set_database", lambda name: name != "utf8mb4"),
    Rule("W012", "innodb_lock_wait_timeout", lambda seconds: seconds > MAX_LOCK_WAIT),
    Rule("W042", "connect_timeout", not_),
    Rule("W042", "read_timeout", not_),
    Rule("W043", "idle_transaction_timeout", _is_long_idle),
    Rule("W043", "wait_timeout", _is_long_idle),
    # PostgreSQL
    Rule("W042", "tcp_user_timeout", not_),
    Rule("W042", "keepalives_idle", not_),
    Rule("W043", "idle_in_transaction_session_timeout", _is_long_idle),
    Rule("W007", "synchronous_commit", _is_off),
    Rule("W008", "fsync", _is_off),
    Rule("W008", "full_page_writes", _is_off),
    Rule("W038", "server_encoding", lambda name: name != "UTF8"),
    Rule("W012", "lock_timeout", lambda seconds: seconds == 0 or seconds > MAX_LOCK_WAIT),
    Rule("W013", "DISABLE_SERVER_SIDE_CURSORS", bool),
    Rule("W040", "server_processes_shared", bool),
    # SQLite
    Rule("E004", "sqlite", lambda version: version < (3, 35)),
    Rule("W014", "transaction_mode", lambda mode: mode == "DEFERRED"),
    Rule("W015", "journal_mode", lambda mode: mode != "wal"),
    Rule("W016", "busy_timeout", lambda seconds: seconds < MIN_BUSY_TIMEOUT),
    Rule("W017", "synchronous", lambda level: level < 2),
    Rule("W018", "in_memory", bool),
)
# Only checked while tables of this package are missing: existing ones are not affected.
NEW_TABLE_RULES = (
    Rule("E019", "innodb_default_row_format", lambda name: name != "dynamic"),
    Rule("E019", "innodb_page_size", lambda size: size < PAGE_SIZE),
)


def judge(about: str, facts: Mapping[str, Any], rules: Sequence[Rule] = RULES) -> list[Problem]:
    """Return the problems of a database server with these facts."""
    return [rule.problem(about, facts[rule.fact]) for rule in _broken(facts, rules)]


def passed(facts: Mapping[str, Any]) -> list[str]:
    """Return the facts that break no rule, as sentences."""
    broken = {rule.fact for rule in _broken(facts)}
    known = dict.fromkeys(rule.fact for rule in RULES if rule.fact in facts)
    return [f"{fact} is {_shown(facts[fact])}" for fact in known if fact not in broken]


def _broken(facts: Mapping[str, Any], rules: Sequence[Rule] = RULES) -> list[Rule]:
    return [rule for rule in rules if rule.fact in facts and rule.is_broken(facts[rule.fact])]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ".".join(map(str, value))
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return f"{value:g}" if isinstance(value, float) else str(value)


ROUTER_CALLS = 16  # some routers answer at random


def leased_models() -> list[Model]:
    """Return every leased model of the project except Ticket."""
    return [
        model
        for model in apps.get_models()
        if issubclass(model, AbstractLease)
        and model is not Ticket
        and not model._meta.proxy
        and not inherited_from(model)
    ]


def aliases_of(model: Model) -> set[str]:
    """Return the databases to which the routers write ``model``; one, if they are consistent."""
    return {router.db_for_write(model) for _ in range(ROUTER_CALLS)}


def models_on(alias: str) -> list[Model]:
    """Return the leased models on this database; with Ticket, if any of them is a resource."""
    here = [model for model in leased_models() if alias in aliases_of(model)]
    return [*here, Ticket] if any(issubclass(model, AbstractResource) for model in here) else here


def own_models_on(alias: str) -> list[Any]:
    """Return this package's own models on this database."""
    ours = apps.get_app_config("resourcepool").get_models()
    return [model for model in ours if router.db_for_write(model) == alias]


def used_aliases() -> list[str]:
    """Return the databases of leased models."""
    return sorted({alias for model in leased_models() for alias in aliases_of(model)})


def ambiguous_models() -> list[Problem]:
    """Report models that the routers write to several databases."""
    return [
        problem("E008", model._meta.label, aliases=", ".join(sorted(aliases)))
        for model in leased_models()
        if len(aliases := aliases_of(model)) > 1
    ]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The problems of a database, and the facts behind them.

    Attributes:
        product: name and version; "" if the database did not answer.
        facts: see ``Inspector.server``.
        tables: facts about the table of each leased model; None if the table does not exist.
    """

    problems: list[Problem]
    product: str = ""
    facts: Mapping[str, Any] | None = None
    tables: Mapping[Model, TableFacts | None] | None = None


def diagnose(connection: BaseDatabaseWrapper) -> Diagnosis:
    """Examine the database behind ``connection``. A database that does not answer is a problem (W020), too."""
    about = f"database {connection.alias!r}"
    if not dialect.supports(connection):
        return Diagnosis([problem("E004", about, database=connection.display_name)])
    try:
        with statement_timeout(), contextlib.closing(StatementAttempt(connection)):
            inspected = inspector(connection)
            facts = {**inspected.server(), **_declared(connection)}
            leased = models_on(connection.alias)
            own = own_models_on(connection.alias)
            names = {model._meta.db_table for model in (*leased, *own)}
            tables = inspected.tables(names) if names else {}
            product = inspected.product()
    except (DatabaseError, InterfaceError) as error:
        # Not an error: ``check`` also runs where there is no database.
        return Diagnosis([problem("W020", about, why=error_text(connection, error))])
    of_leased = {model: tables.get(model._meta.db_table) for model in leased}
    problems = [*judge(about, facts), *judge_tables(connection.alias, of_leased)]
    models_here = {*leased, *own}
    existing = {model: tables[model._meta.db_table] for model in models_here if model._meta.db_table in tables}
    problems += judge_characters(connection, existing)
    if any(model._meta.managed for model in models_here.difference(existing)):
        problems += judge(about, facts, NEW_TABLE_RULES)
    return Diagnosis(problems, product, facts, of_leased)


def judge_tables(alias: str, tables: Mapping[Model, TableFacts | None]) -> Iterator[Problem]:
    """Yield the problems of the existing tables."""
    existing = {model: facts for model, facts in tables.items() if facts is not None}
    for model, facts in existing.items():
        label, table, engine = model._meta.label, model._meta.db_table, facts.engine
        if engine is not None and engine.lower() != "innodb":
            yield problem("E006", label, engine=engine, table=table)
        for field in keys_of(model):
            if collation := facts.non_binary_collations.get(field.column):
                names = {"collation": collation, "table": table, "column": field.column}
                case, length = "mysql" if engine else "", field.max_length or 255
                yield problem("W011", f"{label}.{field.name}", case, length=length, **names)
    if Ticket in tables and Ticket not in existing and existing:
        yield problem("W019", Ticket._meta.label, alias=alias)


def judge_characters(connection: BaseDatabaseWrapper, tables: Mapping[Any, TableFacts]) -> Iterator[Problem]:
    """Yield the tables whose Unicode columns have a narrower character set."""
    for model in sorted(tables, key=lambda model: model._meta.label):
        columns = tables[model].incomplete_charsets
        fields: list[Any] = [
            field for field in model._meta.concrete_fields if isinstance(field, UnicodeCollationMixin)
        ]
        narrow = {field: columns[field.column] for field in fields if field.column in columns}
        if narrow:
            yield problem(
                "W039",
                model._meta.label,
                table=model._meta.db_table,
                columns=", ".join(field.column for field in narrow),
                characters=", ".join(sorted(set(narrow.values()))),
                changes=", ".join(_widened(field, connection) for field in narrow),
            )


def _widened(field: Any, connection: BaseDatabaseWrapper) -> str:
    column = field.db_parameters(connection)
    null = "NULL" if field.null else "NOT NULL"
    return (
        f"MODIFY `{field.column}` {column['type']} CHARACTER SET utf8mb4 COLLATE {column['collation']} {null}"
    )


def keys_of(model: Model) -> list[Any]:
    """Return the text fields of ``model`` that identify rows."""
    text = (models.CharField, models.TextField)
    return [
        field
        for field in model._meta.concrete_fields
        if isinstance(field, KeyField) or (field.primary_key and isinstance(field, text))
    ]


@sensitive_variables()
def error_text(connection: BaseDatabaseWrapper, error: Exception) -> str:
    """Return the text of ``error`` on one line, without the password."""
    text = " ".join(" ".join(str(part) for part in error.args).split()) or type(error).__name__
    settings = connection.settings_dict
    options = settings["OPTIONS"]
    for secret in (settings.get("PASSWORD"), options.get("password"), options.get("passwd")):
        text = text.replace(str(secret), "***") if secret else text
    return text


@sensitive_variables()
def _declared(connection: BaseDatabaseWrapper) -> dict[str, Any]:
    settings = connection.settings_dict
    facts = {
        "AUTOCOMMIT": settings.get("AUTOCOMMIT", True),
        "TEST MIRROR": settings.get("TEST", {}).get("MIRROR"),
        "TIME_ZONE": None if connection.features.supports_timezones else settings.get("TIME_ZONE"),
    }
    return {name: value for name, value in facts.items() if value is not None}

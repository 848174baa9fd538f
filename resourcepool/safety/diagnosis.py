"""Finds the problems of one database without measuring or changing anything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import DatabaseError, InterfaceError, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.views.decorators.debug import sensitive_variables

from resourcepool.db import dialect
from resourcepool.db.dialect import KeyField
from resourcepool.db.inspection import TableFacts, inspector
from resourcepool.db.timeouts import StatementAttempt, statement_timeout
from resourcepool.leases.table import Model, inherited_from
from resourcepool.models import AbstractLease, AbstractResource
from resourcepool.safety.problem import Problem, problem
from resourcepool.safety.rules import NEW_TABLE_RULES, judge
from resourcepool.text import UnicodeCollationMixin
from resourcepool.waiting.models import Ticket

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
        with statement_timeout(), StatementAttempt(connection):
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

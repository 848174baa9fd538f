"""Everything that can be found wrong with one database, without measuring and without changing anything."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.retry import Try, answer_timeout
from resourcepool.dialect.inspection import TableFacts, inspector
from resourcepool.leases.table import Model
from resourcepool.safety.problem import Problem
from resourcepool.safety.routing import models_on
from resourcepool.safety.rule import judge
from resourcepool.safety.rules import RULES
from resourcepool.safety.tables import facts_of, judge_tables


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was read of a database, and what is wrong with it.

    Attributes:
        product: its name and version; empty when it did not answer.
        facts: see ``Inspector.server``.
        tables: how the tables of leased models were made; None for those that are not there.
    """

    problems: list[Problem]
    product: str = ""
    facts: Mapping[str, Any] | None = None
    tables: Mapping[Model, TableFacts | None] | None = None


def diagnose(connection: BaseDatabaseWrapper) -> Diagnosis:
    """Ask the database behind ``connection``; when it cannot be asked, that is the problem."""
    about = f"database {connection.alias!r}"
    if not dialect.supports(connection):
        return Diagnosis([unsupported(connection, about)])
    try:
        with answer_timeout(), Try(connection):
            asked = inspector(connection)
            facts = {**asked.server(), **_declared(connection)}
            tables = facts_of(connection, models_on(connection.alias))
            product = asked.product()
    except (DatabaseError, InterfaceError) as error:
        return Diagnosis([silent(about, told(connection, error))])
    found = [*judge(RULES, about, facts), *judge_tables(connection.alias, tables)]
    return Diagnosis(found, product, facts, tables)


def _declared(connection: BaseDatabaseWrapper) -> dict[str, Any]:
    settings = connection.settings_dict
    facts = {
        "AUTOCOMMIT": settings.get("AUTOCOMMIT", True),
        "TEST MIRROR": settings.get("TEST", {}).get("MIRROR"),
        "TIME_ZONE": None if connection.features.supports_timezones else settings.get("TIME_ZONE"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def told(connection: BaseDatabaseWrapper, error: Exception) -> str:
    """Return what ``error`` says, in one line and without the password."""
    text = " ".join(" ".join(str(part) for part in error.args).split()) or type(error).__name__
    settings = connection.settings_dict
    for secret in (
        settings.get("PASSWORD"),
        *(settings["OPTIONS"].get(name) for name in ("password", "passwd")),
    ):
        text = text.replace(str(secret), "***") if secret else text
    return text


def unsupported(connection: BaseDatabaseWrapper, about: str) -> Problem:
    """Return that this package does not run there."""
    return Problem(
        "E004",
        about,
        f"Leases cannot be kept on {connection.display_name}.",
        "Keep leased models on MariaDB, MySQL, PostgreSQL or SQLite (DATABASE_ROUTERS).",
    )


def silent(about: str, why: str) -> Problem:
    """Return that a database did not answer; no error, because ``check`` is run where there is none, too."""
    return Problem(
        "W020",
        about,
        f"It could not be asked whether it is safe: {why}",
        "Start it, or correct DATABASES; then run the check again.",
        voids=True,
    )

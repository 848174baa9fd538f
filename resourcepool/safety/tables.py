"""What is wrong with the table of a leased model."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect import KeyField
from resourcepool.dialect.inspection import TableFacts, inspector
from resourcepool.leases.table import Model
from resourcepool.safety.problem import Problem
from resourcepool.waiting.models import Ticket


def facts_of(connection: BaseDatabaseWrapper, leased: Sequence[Model]) -> dict[Model, TableFacts | None]:
    """Return how the table of each of these models was made; None for those that do not exist."""
    found = inspector(connection).tables([model._meta.db_table for model in leased]) if leased else {}
    return {model: found.get(model._meta.db_table) for model in leased}


def judge_tables(alias: str, made: Mapping[Model, TableFacts | None]) -> list[Problem]:
    """Return what is wrong with these tables; nothing where there is none yet."""
    there_are = {model: facts for model, facts in made.items() if facts is not None}
    found = [problem for model, facts in there_are.items() for problem in judge_table(model, facts)]
    if Ticket in made and Ticket not in there_are and there_are:
        found.append(without_line(alias))
    return found


def judge_table(model: Model, facts: TableFacts) -> list[Problem]:
    """Return what is wrong with the table of ``model``."""
    label, table = model._meta.label, model._meta.db_table
    found: list[Problem] = []
    if facts.engine is not None and facts.engine.lower() != "innodb":
        found.append(
            Problem(
                "E006",
                label,
                f"Its table is kept by {facts.engine}, which has no transactions and forgets in a crash.",
                f"ALTER TABLE `{table}` ENGINE = InnoDB;",
            )
        )
    return found + [_folded(model, field, facts) for field in keys_of(model) if field.column in facts.folding]


def keys_of(model: Model) -> list[Any]:
    """Return the text fields of ``model`` by which rows are told apart."""
    text = (models.CharField, models.TextField)
    return [
        field
        for field in model._meta.concrete_fields
        if isinstance(field, KeyField) or (field.primary_key and isinstance(field, text))
    ]


def without_line(alias: str) -> Problem:
    """Return that there are resources, but no table of those who wait for them."""
    return Problem(
        "W019",
        Ticket._meta.label,
        f"Resources are leased on database {alias!r}, but the table of those who wait for them is not there: acquire()"
        " raises NotMigrated.",
        f"Let allow_migrate() of your DATABASE_ROUTERS pass resourcepool.Ticket on {alias!r}, then run:"
        f" manage.py migrate resourcepool --database={alias}",
        voids=True,
    )


def missing(alias: str, model: Model) -> Problem:
    """Return that a table was not made yet; for the doctor, because before the first ``migrate`` this is no fault."""
    return Problem(
        "W021",
        model._meta.label,
        f"Its table {model._meta.db_table!r} is not there on database {alias!r}.",
        f"manage.py migrate --database={alias}",
        voids=model._meta.managed,
    )


def _folded(model: Model, field: Any, facts: TableFacts) -> Problem:
    collation = facts.folding[field.column]
    hint = "Make it a resourcepool.dialect.KeyField and migrate."
    if facts.engine is not None:
        hint += (
            f" If it is one: ALTER TABLE `{model._meta.db_table}` MODIFY `{field.column}`"
            f" VARCHAR({field.max_length or 255}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL;"
        )
    return Problem(
        "W011",
        f"{model._meta.label}.{field.name}",
        f'The column compares by {collation}: "Jobs" and "jobs" can be the same key.',
        hint,
    )

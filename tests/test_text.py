"""Any Unicode text, in a database with a western European character set."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from django.db import DataError, connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Case, F, TextField, Value, When

from resourcepool.models import Proxy, Stream, Task, Timer
from resourcepool.taskqueue import NewTask, handler, submit, submit_many
from tests.app.rows import new
from tests.committed import *  # noqa: F403 (fixtures)
from tests.taskqueue.consumers import consuming, finished, states, stream, task

NAME = "resourcepool_of_western_europe"
MADE = {
    "mysql": f"CREATE DATABASE {NAME} CHARACTER SET latin1",
    "postgresql": f"CREATE DATABASE {NAME} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
}


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture(autouse=True)
def _forgotten_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resourcepool.taskqueue.handlers.task_registry.known", {})
    monkeypatch.setattr("resourcepool.taskqueue.timers.handlers.timer_registry.known", {})


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A database of another character set, with the tables of the package."""
    name = f"{NAME}_{connection.settings_dict['NAME']}"
    with django_db_blocker.unblock():
        execute(f"DROP DATABASE IF EXISTS {name}", MADE[connection.vendor].replace(NAME, name))
        with elsewhere():
            MigrationExecutor(connection).migrate([("resourcepool", "0001_initial")])
        yield
        execute(f"DROP DATABASE {name}")


@pytest.fixture
def narrow(made: None) -> Iterator[None]:
    """This process works in that database, with all its threads."""
    with elsewhere():
        yield
        for model in (Timer, Task, Stream):
            model.objects.all().delete()


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    usual, entry = connections["default"], connections.settings["default"]
    other = {**usual.settings_dict, "NAME": f"{NAME}_{usual.settings_dict['NAME']}"}
    with mock.patch.dict(connections.settings, {"default": {**entry, **other}}):
        connections["default"] = connections.create_connection("default")
        try:
            yield
        finally:
            connections["default"].close()
            connections["default"] = usual


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextlib.contextmanager
def latin1(table: str, *names: str) -> Iterator[None]:
    """Have these columns hold the characters of western Europe alone, as all of such a database on PostgreSQL do."""
    if connection.vendor == "mysql":
        for name in names:
            execute(f"ALTER TABLE {table} MODIFY {name} VARCHAR(2000) CHARACTER SET latin1 NOT NULL")
    yield
    if connection.vendor == "mysql":
        for name in names:
            execute(f"ALTER TABLE {table} MODIFY {name} VARCHAR(2000) CHARACTER SET utf8mb4 NOT NULL")


@pytest.mark.only("mysql")
def test_every_column_of_text_is_made_for_all_characters(narrow: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
            " AND table_name LIKE 'resourcepool%%' AND character_set_name <> 'utf8mb4'"
        )
        assert list(cursor.fetchall()) == []


@pytest.mark.only("mysql")
def test_what_many_tasks_are_given_is_stored_as_it_is(narrow: None) -> None:
    stream()
    assert submit_many("oracle", [NewTask("note", {"名": "😀"}, key="表", lane="Ж")]) == 1
    assert (task("表").params, task("表").lane) == ('{"名": "😀"}', "Ж")


@pytest.mark.only("mysql")
def test_what_a_column_cannot_hold_is_refused_and_never_stored_as_something_else(narrow: None) -> None:
    stream()
    submit("oracle", "note", key="there")
    tasks = [NewTask("note", key="good"), NewTask("note", {"text": "😀"}, key="bad")]
    with latin1("resourcepool_task", "params"), pytest.raises(DataError, match="Incorrect string value"):
        submit_many("oracle", tasks)
    assert states() == {"there": "ready"}


SAID = {"result": '{"said": "\\u540d\\ud83d\\ude00"}', "error": "ValueError: \\u540d\\ud83d\\ude00"}


@pytest.mark.only("mysql", "postgresql")
def test_no_text_of_a_tasks_result_or_error_ends_the_consumer(narrow: None) -> None:
    @handler("say")
    def say(one: Any) -> dict[str, str]:
        if one.key == "error":
            raise ValueError("名😀")
        return {"said": "名😀"}

    stream(on_failure="dead-letter")
    for key in SAID:
        submit("oracle", "say", key=key)
    with latin1("resourcepool_task", "outcome"):
        with consuming():
            finished(2)
        assert {key: task(key).outcome for key in SAID} == SAID
        assert states() == {"result": "done", "error": "dead"}


def test_the_columns_combine_with_texts_of_djangos_own_in_expressions() -> None:
    row = new(Proxy, notes="some")
    rows = Proxy.objects.annotate(
        first=Case(When(pk=0, then=Value("none")), default=F("status")),
        last=Case(When(pk=0, then=F("status")), default=Value("other")),
        text=Case(When(pk=0, then=Value("none", TextField())), default=F("notes")),
    )
    assert rows.values_list("first", "last", "text").get() == (row.status, "other", "some")

"""No database, no tables, no access: a clear error at once, and nothing hangs."""

import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, NotMigrated, ResourcePoolError
from resourcepool.models import Proxy, Ticket
from tests.spawned import Child, Spawner

EMPTY = "resourcepool_not_migrated"


def acquire(criteria: dict[str, Any]) -> None:
    """Try to acquire; print the result in one line."""
    began = time.monotonic()
    try:
        (Proxy.pool.acquire_many if "count" in criteria else Proxy.pool.acquire)(**criteria)
    except (ResourcePoolError, DatabaseError) as error:
        text = f"{type(error).__name__} after {time.monotonic() - began:.2f} s: {error}"
        print(text.replace("\n", " "), flush=True)
    else:
        print("acquired", flush=True)


def acquire_without_a_column(criteria: dict[str, Any]) -> None:
    """Wait in line with new code and old tables."""
    call_command("migrate", "resourcepool", verbosity=0)
    with connection.schema_editor() as editor:
        editor.remove_field(Ticket, Ticket._meta.get_field("address"))
    acquire(criteria)


def told(child: Child) -> tuple[str, float, str]:
    """Return the error's name, how long it took, and its text."""
    child.succeed()
    (line,) = [line for line in child.lines if " after " in line]
    name, rest = line.split(" after ", 1)
    seconds, text = rest.split(" s: ", 1)
    return name, float(seconds), text


WAYS = [{"wait": False}, {"timeout": 600}]


class TestTablesNotMigrated:
    @pytest.fixture
    def empty(self, tmp_path: Path) -> Iterator[str]:
        """The URL of a database without migrations."""
        if connection.vendor == "sqlite":
            yield f"sqlite:///{tmp_path}/empty.sqlite3"
            return
        quoted = connection.ops.quote_name(f"{EMPTY}_{os.getpid()}")
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {quoted}")
        yield urlsplit(settings.DATABASE_URL)._replace(path=f"/{EMPTY}_{os.getpid()}").geturl()
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {quoted}")

    @pytest.mark.parametrize(
        ("work", "criteria", "word"),
        [
            *((acquire, way, "resourcepool_") for way in (*WAYS, {"count": 3, "timeout": 600})),
            (acquire_without_a_column, {"timeout": 600}, "address"),  # the first column that is not there
        ],
    )
    def test_names_the_command(self, spawn: Spawner, empty: str, work: Any, criteria: Any, word: str) -> None:
        name, _, text = told(spawn(work, criteria, DATABASE_URL=empty))
        assert name == NotMigrated.__name__
        assert "run `manage.py migrate`" in text
        assert word in text
        assert "LINE 1" not in text


class TestServerGoneAtStart:
    """No listener on the port, or the folder of the file does not exist."""

    @pytest.mark.only("mysql", "postgresql")
    @pytest.mark.parametrize(
        ("criteria", "error", "least"),
        [
            ({"wait": False}, DatabaseUnavailable, 0),
            ({"timeout": 0}, DatabaseUnavailable, 0),
            ({"timeout": 1}, AcquireTimeout, 1),
        ],
        ids=str,
    )
    def test_the_reason_is_told_without_the_password(
        self, spawn: Spawner, criteria: dict[str, Any], error: type[Exception], least: float
    ) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
            netloc = f"me:hunter2-is-secret@127.0.0.1:{listener.getsockname()[1]}"
            gone = urlsplit(settings.DATABASE_URL)._replace(netloc=netloc).geturl()
            child = spawn(acquire, criteria, DATABASE_URL=gone)
            name, seconds, text = told(child)
        assert (name, seconds >= least) == (error.__name__, True)
        assert "database 'default'" in text
        assert ("within 1 s" in text) is bool(least)
        assert "hunter2" not in child.output

    @pytest.mark.only("sqlite")
    @pytest.mark.parametrize("criteria", WAYS, ids=str)
    def test_a_file_that_cannot_be_opened_is_said_at_once(
        self, spawn: Spawner, tmp_path: Path, criteria: dict[str, Any]
    ) -> None:
        # The settings make the folder of a file; a file that is a folder cannot be opened either.
        name, _, text = told(spawn(acquire, criteria, DATABASE_URL=f"sqlite:///{tmp_path}"))
        assert name == DatabaseUnavailable.__name__
        assert "unable to open database file" in text


class TestRefused:
    """A wrong password or database is refused at once."""

    @pytest.mark.only("mysql", "postgresql")
    @pytest.mark.parametrize("criteria", WAYS, ids=str)
    @pytest.mark.parametrize("word", ["nobody_of_this_name", "no_such_database"])
    def test_a_wrong_login_or_database_fails_at_once(
        self, spawn: Spawner, criteria: dict[str, Any], word: str
    ) -> None:
        url = urlsplit(settings.DATABASE_URL)
        netloc = f"{word}:wrong-hunter2@{url.netloc.rpartition('@')[2]}"
        wrong = url._replace(path=f"/{word}") if "database" in word else url._replace(netloc=netloc)
        child = spawn(acquire, criteria, DATABASE_URL=wrong.geturl())
        name, _, text = told(child)
        assert name == DatabaseUnavailable.__name__
        assert word in text
        assert "hunter2" not in child.output

    @pytest.mark.only("sqlite")
    def test_a_file_that_is_no_database_fails_at_once(self, spawn: Spawner, tmp_path: Path) -> None:
        file = tmp_path / "not.sqlite3"
        file.write_text("this is a letter, not a database\n" * 100)
        name, _, text = told(spawn(acquire, {"timeout": 600}, DATABASE_URL=f"sqlite:///{file}"))
        assert name == "DatabaseError"
        assert "not a database" in text


@pytest.mark.only("sqlite")
def test_a_file_that_somebody_keeps_locked_is_unavailable_not_a_hang(spawn: Spawner, tmp_path: Path) -> None:
    """The timeout of the settings (20 s) is for one statement; it is shortened here."""
    name = str(connection.settings_dict["NAME"])
    other = sqlite3.connect(name, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        url = f"sqlite:///{Path(name).absolute()}?timeout=1"
        Proxy.objects.count()
        kind, _, text = told(spawn(acquire, {"timeout": 2}, DATABASE_URL=url))
    finally:
        other.rollback()
        other.close()
    assert kind == AcquireTimeout.__name__
    assert "locked" in text

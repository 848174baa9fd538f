"""No database, no tables, no access: a clear error at once, and nothing hangs."""

import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, NotMigrated, ResourcePoolError
from resourcepool.models import Proxy, Ticket
from tests.spawned import Child, Spawner

EMPTY = "resourcepool_not_migrated"


def say(error: Exception, began: float) -> None:
    print(
        f"{type(error).__name__} after {time.monotonic() - began:.2f} s: {error}".replace("\n", " "), flush=True
    )


def acquire(criteria: dict[str, object]) -> None:
    """Try to acquire; print the result in one line."""
    began = time.monotonic()
    try:
        Proxy.pool.acquire(**criteria)
    except (ResourcePoolError, DatabaseError) as error:
        say(error, began)
    else:
        print("acquired", flush=True)


def told(child: Child) -> tuple[str, float, str]:
    """Return the error's name, how long it took, and its text."""
    child.succeed()
    (line,) = [line for line in child.lines if " after " in line]
    name, rest = line.split(" after ", 1)
    seconds, text = rest.split(" s: ", 1)
    return name, float(seconds), text


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

    @pytest.mark.parametrize("criteria", [{"wait": False}, {"timeout": 600}], ids=str)
    def test_names_the_command(self, spawn: Spawner, empty: str, criteria: dict[str, object]) -> None:
        name, _, text = told(spawn(acquire, criteria, DATABASE_URL=empty))
        assert name == NotMigrated.__name__
        assert "run `manage.py migrate`" in text
        assert "resourcepool_" in text
        assert "LINE 1" not in text

    def test_names_the_command_to_somebody_who_wants_several(self, spawn: Spawner, empty: str) -> None:
        name, _, text = told(spawn(acquire_many, DATABASE_URL=empty))
        assert name == NotMigrated.__name__
        assert "run `manage.py migrate`" in text

    def test_names_the_command_after_half_an_upgrade(self, spawn: Spawner, empty: str) -> None:
        name, _, text = told(spawn(acquire_without_a_column, DATABASE_URL=empty))
        assert name == NotMigrated.__name__
        assert "run `manage.py migrate`" in text
        assert "address" in text, "the first column that is not there"


def acquire_without_a_column() -> None:
    """Wait in line with new code and old tables."""
    call_command("migrate", "resourcepool", verbosity=0)
    with connection.schema_editor() as editor:
        editor.remove_field(Ticket, Ticket._meta.get_field("address"))
    acquire({"timeout": 600})


def acquire_many() -> None:
    began = time.monotonic()
    try:
        Proxy.pool.acquire_many(3, timeout=600)
    except (ResourcePoolError, DatabaseError) as error:
        say(error, began)


class TestServerGoneAtStart:
    """No listener on the port, or the folder of the file does not exist."""

    @pytest.fixture
    def nobody(self, tmp_path: Path) -> Iterator[str]:
        if connection.vendor == "sqlite":
            # The settings make the folder; a file that is a folder cannot be opened either.
            (tmp_path / "folder").mkdir()
            yield f"sqlite:///{tmp_path}/folder"
            return
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
            url = urlsplit(settings.DATABASE_URL)
            login = url.netloc.rpartition("@")[0]
            yield url._replace(netloc=f"{login}@127.0.0.1:{listener.getsockname()[1]}").geturl()

    @pytest.mark.only("mysql", "postgresql")
    @pytest.mark.parametrize("criteria", [{"wait": False}, {"timeout": 0}], ids=str)
    def test_who_does_not_wait_is_told_quickly(
        self, spawn: Spawner, nobody: str, criteria: dict[str, object]
    ) -> None:
        name, _, text = told(spawn(acquire, criteria, DATABASE_URL=nobody))
        assert name == DatabaseUnavailable.__name__
        assert "database 'default'" in text

    @pytest.mark.only("mysql", "postgresql")
    def test_who_waits_is_told_why_nothing_came(self, spawn: Spawner, nobody: str) -> None:
        name, seconds, text = told(spawn(acquire, {"timeout": 1}, DATABASE_URL=nobody))
        assert name == AcquireTimeout.__name__
        assert seconds >= 1
        assert "within 1 s" in text
        assert "database 'default'" in text, "the reason is in it"

    @pytest.mark.only("mysql", "postgresql")
    def test_a_password_is_not_in_the_words(self, spawn: Spawner, nobody: str) -> None:
        url = urlsplit(nobody)
        secret = url._replace(netloc=f"me:hunter2-is-secret@127.0.0.1:{url.port}").geturl()
        child = spawn(acquire, {"timeout": 1}, DATABASE_URL=secret)
        child.succeed()
        assert "hunter2" not in child.output

    @pytest.mark.only("sqlite")
    @pytest.mark.parametrize("criteria", [{"wait": False}, {"timeout": 600}], ids=str)
    def test_a_file_that_cannot_be_opened_is_said_at_once(
        self, spawn: Spawner, nobody: str, criteria: dict[str, object]
    ) -> None:
        name, _, text = told(spawn(acquire, criteria, DATABASE_URL=nobody))
        assert name == DatabaseUnavailable.__name__
        assert "unable to open database file" in text


class TestRefused:
    """A wrong password or database is refused at once."""

    @pytest.mark.only("mysql", "postgresql")
    @pytest.mark.parametrize("criteria", [{"wait": False}, {"timeout": 600}], ids=str)
    def test_a_wrong_password_fails_at_once(self, spawn: Spawner, criteria: dict[str, object]) -> None:
        url = urlsplit(settings.DATABASE_URL)
        place = url.netloc.rpartition("@")[2]
        wrong = url._replace(netloc=f"nobody_of_this_name:wrong-hunter2@{place}").geturl()
        child = spawn(acquire, criteria, DATABASE_URL=wrong)
        name, _, text = told(child)
        assert name == DatabaseUnavailable.__name__
        assert "nobody_of_this_name" in text
        assert "hunter2" not in child.output

    @pytest.mark.only("mysql", "postgresql")
    @pytest.mark.parametrize("criteria", [{"wait": False}, {"timeout": 600}], ids=str)
    def test_a_database_that_does_not_exist_fails_at_once(
        self, spawn: Spawner, criteria: dict[str, object]
    ) -> None:
        wrong = urlsplit(settings.DATABASE_URL)._replace(path="/no_such_database").geturl()
        name, _, text = told(spawn(acquire, criteria, DATABASE_URL=wrong))
        assert name == DatabaseUnavailable.__name__
        assert "no_such_database" in text

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
        kind, _, text = told(spawn(acquire_while_locked, url, DATABASE_URL=url))
    finally:
        other.rollback()
        other.close()
    assert kind == AcquireTimeout.__name__
    assert "locked" in text


def acquire_while_locked(url: str) -> None:
    acquire({"timeout": 2})

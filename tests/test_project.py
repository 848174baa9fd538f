"""The project around the app: what it reads from the environment, and its landing page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from project.databases import database
from project.environment import env_flag, env_list
from tests.spawned import ROOT


@pytest.mark.django_db
def test_the_landing_page_says_where_to_go_and_needs_nothing_inline(client: Client) -> None:
    page = client.get("/").content.decode()
    assert 'href="/admin/"' in page
    assert not re.search(r"<script(?! src)|<style| style=| on\w+=|https?://", page)


@pytest.mark.django_db
def test_the_admin_asks_who_you_are(client: Client) -> None:
    assert client.get("/admin/").headers["Location"].startswith("/admin/login/")


def test_closed_by_default(tmp_path: Path) -> None:
    program = "from project.settings import *; print(DEBUG, ALLOWED_HOSTS, DATABASES['default']['NAME'])"
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path)}
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"False ['localhost', '127.0.0.1', '[::1]'] {tmp_path}/db.sqlite3\n"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://me:p%40ss@db.example:3307/pool", {"HOST": "db.example", "PORT": 3307, "PASSWORD": "p@ss"}),
        ("mysql://me@/pool?unix_socket=/run/m.sock", {"NAME": "pool", "USER": "me", "HOST": ""}),
        ("postgres://me:pw@db.example/pool", {"ENGINE": "django.db.backends.postgresql", "NAME": "pool"}),
        ("postgresql://me:pw@db.example/pool", {"ENGINE": "django.db.backends.postgresql"}),
    ],
)
def test_a_database_url(url: str, expected: dict[str, object]) -> None:
    assert database(url).items() >= expected.items()


def test_each_database_gets_the_options_it_needs_and_the_url_wins(tmp_path: Path) -> None:
    sqlite = database(f"sqlite:///{tmp_path}/new/pool.sqlite3")
    assert sqlite["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert sqlite["TEST"]["NAME"] == f"{tmp_path}/new/test_pool.sqlite3"
    mysql = database("mysql://me@/pool?unix_socket=/run/m.sock&charset=latin1")["OPTIONS"]
    assert mysql["isolation_level"] == "read committed"
    assert (mysql["unix_socket"], mysql["charset"]) == ("/run/m.sock", "latin1")
    assert "lock_timeout" in database("postgres://me@h/pool")["OPTIONS"]["options"]


def test_flags_and_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCH", "yes")
    assert env_flag("SWITCH")
    monkeypatch.setenv("SWITCH", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="SWITCH='perhaps'"):
        env_flag("SWITCH")
    assert not env_flag("NO_SUCH_SWITCH")
    assert env_list("NO_SUCH_LIST", " a, b,,") == ["a", "b"]

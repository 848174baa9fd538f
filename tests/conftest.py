"""Fixtures and options for all tests. They do not change the code under test."""

import gc
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import pytest
from django.conf import settings
from django.contrib import admin
from django.db import connection, connections
from django.http import HttpRequest
from django.test import TransactionTestCase
from django.utils.functional import SimpleLazyObject
from pytest_django import DjangoDbBlocker

from resourcepool.db.dialect import statement
from tests import case_sample, everywhere, running
from tests.committed import remove_rows_of_all_tables
from tests.forks import Forks
from tests.spawned import Spawner

# A database answers in its own time; a slow example is no failure. Both print how to repeat what they find.
hypothesis.settings.register_profile("short", deadline=None, print_blob=True)
hypothesis.settings.register_profile(
    "long",
    hypothesis.settings.get_profile("short"),
    max_examples=1_500,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose one seed for the whole run, which the header prints."""
    if config.option.hypothesis_seed is None and not hasattr(config, "workerinput"):
        config.option.hypothesis_seed = os.environ.get("TESTS_SEED") or str(secrets.randbelow(10**9))


def pytest_report_header(config: pytest.Config) -> list[str]:
    header = [f"to repeat the generated examples: --hypothesis-seed={config.option.hypothesis_seed}"]
    return (
        header
        if case_sample.TURN is None
        else [*header, f"to repeat which tests it has: TESTS_TURN={case_sample.TURN}"]
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what depends on the database, before ``-m`` chooses; of what is alike, leave a part out."""
    for item in items:
        if everywhere.is_everywhere(item):
            item.add_marker("everywhere")
    if case_sample.TURN is not None:
        once = [
            item.nodeid for item in items if connection.vendor == "sqlite" or item.get_closest_marker("alone")
        ]
        left_out = case_sample.left_out(once, case_sample.TURN)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


# Nothing of what is imported and collected is garbage; to look for it takes a fifth of that time.
gc.disable()


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what is there before the first test: that took a fifth of all time.

    And have it look seldom: pages make many objects, which are gone when the page is.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def app_list_when_shown(request: HttpRequest, app_label: str | None = None) -> Any:
    """Return what Django's admin makes for each page, the sorted names of all models, when a page shows it."""
    return SimpleLazyObject(lambda: list_apps(request, app_label))


list_apps = admin.site.get_app_list
admin.site.get_app_list = app_list_when_shown  # type: ignore[method-assign]


TransactionTestCase._fixture_teardown = remove_rows_of_all_tables  # type: ignore[method-assign]


def pytest_runtest_setup(item: pytest.Item) -> None:
    running.begin()
    # Django's own, with the same list of models on each page: a sixth of their time. Browsers see it.
    admin.site.enable_nav_sidebar = item.get_closest_marker("alone") is not None
    if item.get_closest_marker("alone") and everywhere.databases(item) != {"mariadb"}:
        pytest.fail("what runs alone runs on MariaDB alone: see tests/run.py", pytrace=False)
    # Tests read what is sent; the fixture ``by_name`` has it sent by name.
    statement.Session.prepare_after = sys.maxsize
    mark = item.get_closest_marker("only")
    if mark is None:
        return
    if not mark.args or not set(everywhere.NAMES).issuperset(mark.args):
        pytest.fail(f"only{mark.args} names no database: {', '.join(everywhere.NAMES)}", pytrace=False)
    if everywhere.is_never_run(item):
        pytest.fail("make test finds this test on no database: see tests/everywhere.py", pytrace=False)
    if everywhere.here() not in everywhere.databases(item):
        pytest.skip(f"only on {' and '.join(mark.args)}")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """As pytest-django's; and connections left open by threads do not keep the test database from being dropped."""
    yield
    with django_db_blocker.unblock():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        connections.close_all()


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """The DATABASE_URL of the test database of this worker, for other processes.

    They see only what is committed, so the test runs without a transaction around it.
    """
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{Path(name).absolute()}"
    return urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """What forks the processes that tests start; it starts with the first of them."""
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def spawn(database_url: str, forks: Forks) -> Iterator[Spawner]:
    """Start real Python processes on the test database; see Spawner. They do not outlive the test."""
    spawner = Spawner(database_url, forks)
    yield spawner
    spawner.close()

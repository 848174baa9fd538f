"""The health check that Celery beat starts now and then."""

from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool import tasks
from resourcepool.dialect import DbLater
from resourcepool.exceptions import BadOption, CheckerBroken
from resourcepool.health_checks.check import CheckOptions
from resourcepool.models import Proxy
from resourcepool.status.jobs import jobs
from resourcepool.sweeps.health_checks import check_pool, check_validity
from resourcepool.sweeps.schedule import wanted
from tests.app.rows import change, columns, new, several
from tests.health_checks.scripted_checker import BAD, ScriptedChecker

LABEL = "resourcepool.Proxy"


@pytest.fixture(autouse=True)
def _scripted(settings: Any) -> Iterator[None]:
    chosen = {LABEL: {"checker": f"{ScriptedChecker.__module__}.ScriptedChecker", "every": 100}}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": chosen}
    yield
    ScriptedChecker.forget()


def test_looks_at_what_was_not_checked_lately() -> None:
    late, early, never = several(Proxy, 3)
    change(late, checked_at=DbLater(-45))
    change(early, checked_at=DbLater(-60))
    assert check_validity(LABEL) == "2 ok, 0 bad, 0 unknown"
    assert [columns(row)["verdict"] for row in (late, early, never)] == ["", "ok", "ok"]
    assert jobs()[f"check {LABEL}"].result == "2 ok, 0 bad, 0 unknown"


def test_a_broken_checker_is_a_job_that_failed_until_it_works_again() -> None:
    rows = several(Proxy, 6)
    ScriptedChecker.finds = {row.pk: BAD for row in rows}
    with pytest.raises(CheckerBroken):
        check_validity(LABEL)
    assert jobs()[f"check {LABEL}"].failed is not None
    ScriptedChecker.finds = {}
    check_validity(LABEL)
    assert jobs()[f"check {LABEL}"].failed is None


def test_the_celery_task_says_what_came_of_it() -> None:
    rows = several(Proxy, 6)
    ScriptedChecker.finds = {row.pk: BAD for row in rows}
    assert "6 of 6 failed together" in tasks.check_validity(LABEL)
    ScriptedChecker.finds = {}
    assert tasks.check_validity(LABEL) == "6 ok, 0 bad, 0 unknown"


def test_it_is_what_the_beat_starts() -> None:
    (entry,) = [one for one in wanted() if one.task == tasks.check_validity.name]
    assert (entry.arguments, entry.every) == ((LABEL,), 100)


def test_an_unknown_pool_is_named() -> None:
    with pytest.raises(BadOption, match="till"):
        check_validity("shop.till")


def test_new_ones_are_looked_at_by_the_next_run() -> None:
    assert check_validity(LABEL) == "0 ok, 0 bad, 0 unknown"
    row = new(Proxy)
    check_validity(LABEL)
    assert columns(row)["verdict"] == "ok"


def test_a_pool_that_nothing_is_said_about_is_refused_and_no_job_has_failed(settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {}}
    with pytest.raises(BadOption, match="nothing says how to check them"):
        check_pool(Proxy, CheckOptions())
    assert f"check {LABEL}" not in jobs()

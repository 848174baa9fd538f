"""The health check that Celery beat starts periodically."""

from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool import tasks
from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption, CheckerBroken
from resourcepool.health_checks.check import CheckOptions
from resourcepool.models import Proxy
from resourcepool.status.internals import jobs
from resourcepool.sweeps.schedule import desired_entries
from resourcepool.sweeps.sweep import check_health, check_pool
from tests.app.rows import change, columns, several
from tests.health_checks.scripted_checker import BAD, ScriptedChecker

LABEL = "resourcepool.Proxy"


@pytest.fixture(autouse=True)
def _scripted(settings: Any) -> Iterator[None]:
    chosen = {LABEL: {"checker": f"{ScriptedChecker.__module__}.ScriptedChecker", "every": 100}}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": chosen}
    yield
    ScriptedChecker.forget()


def test_checks_resources_that_were_not_checked_recently() -> None:
    late, early, never = several(Proxy, 3)
    change(late, checked_at=DbLater(-45))
    change(early, checked_at=DbLater(-60))
    assert check_health(LABEL) == "2 ok, 0 bad, 0 unknown"
    assert [columns(row)["verdict"] for row in (late, early, never)] == ["", "ok", "ok"]
    assert jobs()[f"check {LABEL}"].result == "2 ok, 0 bad, 0 unknown"


def test_a_broken_checker_fails_the_job_until_it_works_again() -> None:
    rows = several(Proxy, 6)
    ScriptedChecker.finds = {row.pk: BAD for row in rows}
    with pytest.raises(CheckerBroken):
        check_health(LABEL)
    assert jobs()[f"check {LABEL}"].failed is not None
    ScriptedChecker.finds = {}
    check_health(LABEL)
    assert jobs()[f"check {LABEL}"].failed is None


def test_the_celery_task_returns_the_result() -> None:
    rows = several(Proxy, 6)
    ScriptedChecker.finds = {row.pk: BAD for row in rows}
    assert "6 of 6 failed together" in tasks.check_health(LABEL)
    ScriptedChecker.finds = {}
    assert tasks.check_health(LABEL) == "6 ok, 0 bad, 0 unknown"


def test_celery_beat_starts_it() -> None:
    (entry,) = [one for one in desired_entries() if one.task == tasks.check_health.name]
    assert (entry.arguments, entry.every) == ((LABEL,), 100)


def test_an_unknown_pool_is_an_error_with_its_name() -> None:
    with pytest.raises(BadOption, match="till"):
        check_health("shop.till")


def test_a_pool_without_settings_is_refused_without_a_failed_job(settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {}}
    with pytest.raises(BadOption, match="no checker is configured"):
        check_pool(Proxy, CheckOptions())
    assert f"check {LABEL}" not in jobs()

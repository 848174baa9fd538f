"""Valid and invalid values of RESOURCEPOOL["HINTS"]; messages never contain passwords."""

import sys
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.test import override_settings

from resourcepool.documentation import documented
from resourcepool.exceptions import BadOption, PackageMissing
from resourcepool.hints import choice
from resourcepool.hints.choice import Choice


def found(hints: Any) -> list[tuple[str, str, str]]:
    """Return (id, message, hint) of the check messages for this setting."""
    with override_settings(RESOURCEPOOL={"HINTS": hints}):
        return [(error.id, error.msg, error.hint or "") for error in run_checks(tags=["resourcepool"])]


@pytest.mark.parametrize(
    ("hints", "chosen"),
    [
        ("postgresql", Choice("postgresql", "default")),
        ("postgresql:pools", Choice("postgresql", "pools")),
        ("redis://host:6379/0", Choice("redis", "redis://host:6379/0")),
        ("unix:///run/redis.sock", Choice("unix", "unix:///run/redis.sock")),
        ("amqp://guest:guest@host//", Choice("amqp", "amqp://guest:guest@host//")),
        ("redis+socket:///run/redis.sock", Choice("redis+socket", "redis+socket:///run/redis.sock")),
    ],
)
def test_parses_the_setting(hints: str, chosen: Choice) -> None:
    assert choice.parse_choice(hints) == chosen


@pytest.mark.parametrize(
    "hints", [None, "", "redis://h", "rediss://h:1/0", "amqp://h", "amqps://h", "memory://"]
)
def test_valid_settings(hints: Any) -> None:
    assert found(hints) == []


@pytest.mark.parametrize(
    ("hints", "identity", "message"),
    [
        (7, "E001", "RESOURCEPOOL['HINTS']='int' is not allowed: it must be None, 'postgresql'"),
        ("yes", "E001", "RESOURCEPOOL['HINTS']='...' is not allowed: it must be None, 'postgresql'"),
        ("joe:hush@host", "E001", "RESOURCEPOOL['HINTS']='...' is not allowed"),
        ("joe:hush@host://", "E001", "RESOURCEPOOL['HINTS']='...' is not allowed"),
        ("postgresql:", "E001", "RESOURCEPOOL['HINTS']='postgresql:...' is not allowed"),
        ("postgresql:joe:hush@host", "E001", "RESOURCEPOOL['HINTS']='postgresql:...' is not allowed"),
        ("postgresql://joe:hush@host/db", "E001", "RESOURCEPOOL['HINTS']='postgresql://...' is not allowed"),
        ("postgres://joe:hush@host/db", "E001", "RESOURCEPOOL['HINTS']='postgres://...' is not allowed"),
        (
            "redis://joe:hush@host:port/0",
            "E012",
            "RESOURCEPOOL['HINTS']='redis://...' is not allowed: redis-py",
        ),
        ("amqq://joe:hush@host", "E012", "'amqq://...' is not allowed: unknown kombu broker"),
        ("postgresql:nowhere", "E012", "'postgresql:nowhere' is not allowed: DATABASES has no 'nowhere'"),
    ],
)
def test_invalid_settings_are_reported_with_a_hint(hints: Any, identity: str, message: str) -> None:
    ((one, said, advice),) = found(hints)
    assert one == f"resourcepool.{identity}"
    assert message in said
    assert documented("how-to/hints") in advice
    assert "hush" not in said + advice


@pytest.mark.only("sqlite", "mysql")
def test_only_postgresql_carries_hints_by_itself() -> None:
    ((one, said, _),) = found("postgresql")
    assert one == "resourcepool.E012"
    assert f"database 'default' is {connection.vendor}; only PostgreSQL carries hints" in said


@pytest.mark.parametrize(
    ("hints", "module", "package"),
    [("redis://host", "redis", "redis"), ("amqp://host", "kombu.transport", "celery")],
)
def test_a_client_that_is_not_installed_is_named(
    hints: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    ((one, said, _),) = found(hints)
    assert one == "resourcepool.W041"
    assert said.endswith(f"is not installed: pip install {package}.")
    with pytest.raises(PackageMissing):
        choice.parse_choice(hints).open()


def test_use_raises_the_same_error() -> None:
    ((_, said, _),) = found("redis://joe:hush@host:port/0")
    with pytest.raises(BadOption) as refused:
        choice.parse_choice("redis://joe:hush@host:port/0").open()
    assert f"{refused.value}." == said


def test_a_choice_shows_no_password() -> None:
    assert "hush" not in repr(choice.parse_choice("redis://joe:hush@host/0"))

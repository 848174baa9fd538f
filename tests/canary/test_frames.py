"""No local variable of the package, as shown in error reports, contains a secret.

``conftest`` looks into the frames of all other tests here, which call commands and pages.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection

from resourcepool.conf import setting, ticket_ttl
from resourcepool.contrib.dispenser_parts import TaskPool
from resourcepool.db.dialect import private_connection
from resourcepool.elections import Election
from resourcepool.exceptions import BadOption, ResourcePoolError
from resourcepool.health_checks.check import check
from resourcepool.hints import choice
from resourcepool.locks import Barrier, Channel, Condition, Lock, RWLock, Semaphore
from resourcepool.models import Proxy
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.queues import QueueServer
from resourcepool.resources.state import quarantine_limits
from resourcepool.rest.refusals import error_response
from resourcepool.status.alarms import Thresholds
from resourcepool.sweeps.pruning import history_kept
from resourcepool.taskqueue import submit, timers
from resourcepool.taskqueue.timers.runner import node_labels
from tests.canary.planted import DATABASE, PASSWORD, TOKEN
from tests.frames import failures_inside, looked_into, shown_by

BROKER = "c4nary-br0ker"
HINTS = f"redis://joe:{BROKER}@127.0.0.1:1/0"

WRONG: dict[str, Callable[[], Any]] = {
    "acquire": lambda: Proxy.pool.acquire(ttl="x"),
    "acquire, a selector": lambda: Proxy.pool.acquire(nothing="x"),
    "acquire_many": lambda: Proxy.pool.acquire_many(-1),
    "lease": lambda: Proxy.pool.lease(timeout="x").__enter__(),
    "adopt": lambda: Proxy.pool.adopt("x", 0),
    "Lock": lambda: Lock("a", ttl="x"),
    "Semaphore": lambda: Semaphore("a", "x"),
    "RWLock": lambda: RWLock("\n"),
    "Condition": lambda: Condition("a").wait("x"),
    "Barrier": lambda: Barrier("\n"),
    "Channel": lambda: Channel("a").publish(object()),
    "Election": lambda: Election("a", ttl="x"),
    "QueueServer": lambda: QueueServer("\n"),
    "submit": lambda: submit("nowhere", 1, 2),
    "TaskPool": lambda: TaskPool("a").assign("x"),
    "schedule": lambda: timers.schedule("a", after="x", topic="t"),
}
SETTINGS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "TTL": ("x", Proxy.pool.acquire),
    "TICKET_TTL": ("x", ticket_ttl),
    "QUARANTINE": ({"base": "x"}, quarantine_limits),
    "HISTORY_KEPT": ("x", history_kept),
    "ALARMS": ({"oldest_wait": "x"}, Thresholds.from_settings),
    "CHECKS": ({"resourcepool.Proxy": [TOKEN]}, lambda: check(Proxy)),
    "HINTS": (f"postgresql:{BROKER}@x", choice.configured),
    "NODE_LABELS": ("x", node_labels),
    "POOLS": ({"resourcepool.Proxy": {"ttl": "x"}}, Proxy.pool.acquire),
    "SECRET_KEYS": ([BROKER], lambda: Proxy(password="x")),
}


@pytest.fixture
def secrets(settings: Any) -> tuple[str, ...]:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": HINTS}
    return (*settings.RESOURCEPOOL["SECRET_KEYS"], BROKER, DATABASE, TOKEN)


@pytest.mark.parametrize("call", WRONG)
def test_a_call_with_a_wrong_value_has_none_in_its_frames(call: str, secrets: tuple[str, ...]) -> None:
    with looked_into(*secrets) as found, pytest.raises((BadOption, TypeError)) as raised:
        WRONG[call]()
    assert not found
    assert not shown_by(raised.value, *secrets)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wrong_setting_has_none_in_its_frames(name: str, secrets: tuple[str, ...], settings: Any) -> None:
    value, use = SETTINGS[name]
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, name: value}
    with looked_into(*secrets) as found, pytest.raises(ResourcePoolError) as raised:
        use()
    assert not found
    assert not shown_by(raised.value, *secrets)
    for said in (str(raised.value), str(run_checks(tags=["resourcepool"]))):
        assert not [secret for secret in secrets if secret in said]


@pytest.mark.parametrize("nested", ["", "QUARANTINE", "ALARMS", "CHECKS", "POOLS", "NODE_LABELS"])
def test_a_comma_too_many_after_the_settings_tells_none(
    nested: str, secrets: tuple[str, ...], settings: Any
) -> None:
    chosen = settings.RESOURCEPOOL
    settings.RESOURCEPOOL = {**chosen, nested: (chosen,)} if nested else (chosen,)
    with looked_into(*secrets) as found, pytest.raises(BadOption, match="a dict, not a tuple") as raised:
        setting(nested or "TTL")
    assert not found
    assert not shown_by(raised.value, *secrets)
    for said in (
        str(raised.value),
        str(error_response(raised.value, 400).data),
        str(run_checks(tags=["resourcepool"])),
    ):
        assert not [secret for secret in secrets if secret in said]


@pytest.mark.parametrize(
    "url", [HINTS, f"amqp://joe:{BROKER}@127.0.0.1:1//", f"redis://joe:{BROKER}@[", f"x//{BROKER}"]
)
def test_what_carries_hints_has_no_password_in_its_frames(
    url: str, secrets: tuple[str, ...], settings: Any
) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": url}
    with looked_into(*secrets) as found, pytest.raises(Exception) as raised:  # noqa: PT011 (each client has its own)
        choice.configured().open().send(["1"])  # type: ignore[union-attr]
    assert not found
    assert not shown_by(raised.value, *secrets)


@pytest.mark.only("mysql", "postgresql")
def test_a_database_that_is_not_there_has_no_password_in_its_frames(
    secrets: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.close()
    elsewhere = {"PASSWORD": DATABASE, "HOST": "127.0.0.1", "PORT": "1"}
    with monkeypatch.context() as patch:
        for name, value in elsewhere.items():
            patch.setitem(connection.settings_dict, name, value)
        private = private_connection("default")
        for use in (lambda: Proxy.pool.acquire(wait=False), private.ensure_connection):
            with looked_into(*secrets) as found, pytest.raises(Exception) as raised:  # noqa: PT011 (the driver's)
                use()
            assert not found
            assert not shown_by(raised.value, *secrets)


@pytest.mark.parametrize(
    "text",
    [
        f"http://joe:{PASSWORD}@a.example:8\n",
        f"a.example:8:joe:{PASSWORD}\nb.example:8:joe:{PASSWORD}\xff\n",
        f"url,notes\nhttp://joe:{PASSWORD}@a.example:8,x\n",
        f'host,port,password\na.example,8,{PASSWORD}\nb.example,8,"{PASSWORD}\n',
        f"{PASSWORD}\n",
        f"http://joe:{PASSWORD}@a.example:8\nhttp://joe:{PASSWORD}@a.example:x\nhttp://joe:{PASSWORD}@a.example:8\r.\n",
        f"host,port,pass{PASSWORD}\n{PASSWORD}\n",
    ],
)
def test_an_import_that_fails_anywhere_has_no_password_in_its_frames(text: str) -> None:
    content = text.encode("latin-1")
    errors = list(failures_inside(lambda: ProxyImporter().run("a", stream=BytesIO(content), dry_run=True)))
    assert len(errors) > 5
    for error in errors:
        assert not shown_by(error, PASSWORD)

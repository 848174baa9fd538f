"""Handlers that leave something behind: it is their task's failure, and nothing of it reaches the next task."""

import logging
import re
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.models import Stream
from resourcepool.taskqueue import handler, submit
from tests.taskqueue.consumers import consuming, finished, states, stream, task


def _runs_after(run: Any) -> str:
    """Run this handler, then one that writes; return the outcome of the first."""
    stream(on_failure="skip")
    handler("first")(run)

    @handler("write")
    def write(one: Any) -> None:
        with transaction.atomic(), one.guard():
            Stream.objects.filter(pk="oracle").update(retry_delay=99)

    submit("oracle", "first", key="a")
    submit("oracle", "write", key="b")
    with consuming():
        finished(2)
    assert states()["b"] == "done"
    assert Stream.objects.get().retry_delay == 99
    assert states()["a"] in ("done", "skipped")
    return str(task("a").outcome) if states()["a"] == "skipped" else "done"


def leave_open(_: Any) -> None:
    transaction.atomic().__enter__()
    Stream.objects.filter(pk="oracle").update(retries=7)


def leave_autocommit_off(_: Any) -> None:
    transaction.set_autocommit(False)
    Stream.objects.filter(pk="oracle").update(retries=7)


def use_a_closed_connection(_: Any) -> None:
    Stream.objects.exists()
    connection.connection.close()
    Stream.objects.exists()


def yield_something(_: Any) -> Any:
    yield


class Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit


def raise_what_cannot_be_printed(_: Any) -> None:
    raise Exits


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (leave_open, "the handler left a transaction open on 'default'; it was rolled back"),
        (leave_autocommit_off, "the handler left a transaction open on 'default'; it was rolled back"),
        (lambda _: connection.close(), "done"),
        (use_a_closed_connection, ".*Error.*"),
        (yield_something, "the handler did not run: it returned a generator"),
        (raise_what_cannot_be_printed, "SystemExit:.*"),
    ],
)
def test_what_a_handler_leaves_behind_is_undone_and_is_its_own_failure(run: Any, outcome: str) -> None:
    assert re.fullmatch(outcome, _runs_after(run))
    assert Stream.objects.get().retries == 0


def test_a_handler_that_has_not_run_has_failed() -> None:
    async def run(_: Any) -> None: ...

    ran: list[Any] = []

    def returns_one(one: Any) -> Any:
        ran.append(run(one))
        return ran[0]

    assert _runs_after(returns_one) == "the handler did not run: it returned a coroutine"
    ran[0].close()


class Refusing(logging.Handler):
    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self._error = error

    def emit(self, record: logging.LogRecord) -> None:
        raise self._error


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_a_log_that_cannot_be_written_ends_no_thread(error: type[BaseException]) -> None:
    logger, refusing = logging.getLogger("resourcepool.taskqueue.running_task"), Refusing(error)
    logger.addHandler(refusing)
    try:
        assert _runs_after(lambda _: 1 / 0) != "done"
    finally:
        logger.removeHandler(refusing)

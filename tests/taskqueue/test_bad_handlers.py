"""Handlers that leave something behind: it is their task's failure, and nothing of it reaches the next task."""

from typing import Any

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


def test_a_transaction_that_is_left_open_is_rolled_back_and_its_task_has_failed() -> None:
    def leave(_: Any) -> None:
        transaction.atomic().__enter__()
        Stream.objects.filter(pk="oracle").update(retries=7)

    assert _runs_after(leave) == "the handler left a transaction open on 'default'; it was rolled back"
    assert Stream.objects.get().retries == 0


def test_so_is_one_of_a_handler_that_left_autocommit_off() -> None:
    def leave(_: Any) -> None:
        transaction.set_autocommit(False)
        Stream.objects.filter(pk="oracle").update(retries=7)

    assert _runs_after(leave) == "the handler left a transaction open on 'default'; it was rolled back"
    assert Stream.objects.get().retries == 0


def test_a_handler_may_close_its_connection() -> None:
    assert _runs_after(lambda _: connection.close()) == "done"


def test_a_handler_may_fail_because_its_connection_was_closed_in_the_driver() -> None:
    def close(_: Any) -> None:
        Stream.objects.exists()
        connection.connection.close()
        Stream.objects.exists()

    assert "Error" in _runs_after(close)


def test_a_handler_that_has_not_run_has_failed() -> None:
    async def run(_: Any) -> None: ...

    ran: list[Any] = []

    def returns_one(one: Any) -> Any:
        ran.append(run(one))
        return ran[0]

    assert _runs_after(returns_one) == "the handler did not run: it returned a coroutine"
    ran[0].close()


def test_a_generator_is_not_a_result() -> None:
    def yields(_: Any) -> Any:
        yield

    assert _runs_after(yields) == "the handler did not run: it returned a generator"

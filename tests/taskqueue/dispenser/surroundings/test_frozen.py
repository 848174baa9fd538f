"""A process that is suspended during a call blocks others only briefly, and finishes nothing afterwards."""

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import Error, transaction

from resourcepool.contrib.dispenser_parts import TaskPool
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import Bucket
from resourcepool.taskqueue import TaskDispenser
from resourcepool.taskqueue.dispenser import rebuild, statements
from tests.connection_options import short_idle, with_options
from tests.eventually import InBackground, eventually
from tests.spawned import Child, Spawner
from tests.taskqueue.dispenser.dispensers import dispenser, keys, letters, run_out, states

pytestmark = [pytest.mark.only("mysql", "postgresql")]

IDLES = {"commit": 600, "rollback": 600, "none": 5}  # seconds
CALLS: dict[str, Callable[[TaskDispenser], Any]] = {
    "assign": lambda d: d.assign_tasks(2, "alice"),
    "rebuild": lambda d: d.recreate_task_pool({"a": 7.0, "b": 6.0, "x": 1.0}),
    "add": lambda d: d.add_many({"a": 8.0, "b": 9.0}),
    "take for good": lambda d: TaskPool("reviews").assign(2),
}


def stand_still() -> None:
    print("stops", flush=True)
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def stands_still(call: str, statement: str) -> None:
    """Stand still right after this statement of this call."""
    send = getattr(statements, statement)

    def sent(*given: Any) -> Any:
        setattr(statements, statement, send)
        answer = send(*given)
        stand_still()
        return answer

    setattr(statements, statement, sent)
    rebuild.IDLE_TIMEOUT = 2
    try:
        print("told:", CALLS[call](TaskDispenser("reviews")))
    except DatabaseUnavailable:
        print("told: DatabaseUnavailable")


def finishes_and_stands_still(fence: int, end: str) -> None:
    """Finish a task in an own transaction, and stop before its end."""
    try:
        with transaction.atomic():
            assert TaskDispenser("reviews").tasks_done("alice", [("a", fence)]) == {"a": "done"}
            stand_still()
            transaction.set_rollback(end == "rollback")
    except Error:
        print("told: an error")
    else:
        print("told: no error")


def stopped(spawn: Spawner, target: Any, *arguments: Any) -> Child:
    child = spawn(target, *arguments)
    child.line("stops")
    return child


def succeeds(act: Callable[[], Any]) -> bool:
    """Whether nothing that it waits for was locked for too long."""
    try:
        act()
    except (DatabaseUnavailable, Error):
        return False
    return True


def gets(worker: str, wanted: str) -> None:
    """See that this worker is assigned these, at last."""
    d = TaskDispenser("reviews")
    got: list[str] = [""]

    def assigned() -> bool:
        return succeeds(lambda: got.append(keys(d.assign_tasks(len(wanted), worker)))) and got[-1] == wanted

    InBackground(lambda: eventually(assigned, 80)).result(90)


@pytest.mark.parametrize("statement", ["touch", "lock_first_ready", "take"])
def test_what_it_was_being_assigned_goes_to_others_and_it_is_told_so(spawn: Spawner, statement: str) -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(0, "alice")
    child = stopped(spawn, stands_still, "assign", statement)
    gets("bob", "ab")
    child.send(signal.SIGCONT)
    assert child.line("told:") in ("told: []", "told: DatabaseUnavailable")
    assert d.check_tasks("bob", ["a", "b"])


@pytest.mark.parametrize("has_expired", [False, True])
def test_its_bucket_is_another_process_of_its_name_s(spawn: Spawner, has_expired: bool) -> None:
    d = dispenser(letters("abc"))
    d.assign_tasks(1, "alice")
    if has_expired:
        child = stopped(spawn, stands_still, "assign", "read_snapshot")
        run_out("alice")
    else:
        child = stopped(spawn, stands_still, "assign", "take")
    gets("alice", "abc")
    child.send(signal.SIGCONT)
    child.line("told:")
    child.succeed()
    assert Bucket.objects.get().name == "alice"
    assert d.check_tasks("alice", d.assign_tasks(3, "alice"))


@pytest.mark.parametrize(
    ("call", "statement"), [("rebuild", "rescore"), ("add", "rescore"), ("take for good", "retire")]
)
def test_what_it_was_changing_is_as_it_was_for_whoever_comes(spawn: Spawner, call: str, statement: str) -> None:
    d = dispenser(letters("ab"))
    child = stopped(spawn, stands_still, call, statement)
    gets("bob", "ab")
    child.send(signal.SIGCONT)
    child.line("told:")
    child.succeed()
    assert d.check_tasks("bob", ["a", "b"])


@pytest.mark.parametrize("end", ["commit", "rollback", "none"])
def test_what_it_finishes_in_its_own_transaction_holds_up_that_task_alone(
    spawn: Spawner, database_url: str, end: str
) -> None:
    d = dispenser(letters("abc"), bucket_ttl=1)
    ((_, fence, _), _) = d.assign_tasks(2, "alice")
    child = spawn(
        finishes_and_stands_still, fence, end, DATABASE_URL=with_options(database_url, **short_idle(IDLES[end]))
    )
    child.line("stops")
    eventually(lambda: not Bucket.objects.held().filter(name="alice").exists())
    assigned = InBackground(lambda: TaskDispenser("reviews").assign_tasks(2, "bob"))
    assert keys(assigned.result(90)) == "bc"
    if end == "none":
        gets("carol", "a")
    child.send(signal.SIGCONT)
    assert child.line("told:") == ("told: an error" if end == "none" else "told: no error")
    child.succeed()
    gets("carol", "" if end == "commit" else "a")
    assert states()["a"] == ("done" if end == "commit" else "assigned")


def test_an_operator_that_frees_its_bucket_is_told_or_has_freed_it(spawn: Spawner) -> None:
    d = dispenser(letters("ab"))
    d.assign_tasks(1, "alice")
    child = stopped(spawn, stands_still, "assign", "take")
    InBackground(lambda: eventually(lambda: succeeds(lambda: Bucket.objects.revoke("eve")))).result(90)
    assert not Bucket.objects.filter(name="alice").exists()
    gets("bob", "ab")
    child.send(signal.SIGCONT)
    child.line("told:")
    assert d.check_tasks("bob", ["a", "b"])

"""Submitting: one INSERT, safe to repeat, checked before anything is written."""

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any, cast

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from resourcepool.exceptions import BadOption, DatabaseUnavailable
from resourcepool.models import Stream, Task
from resourcepool.taskqueue import NewTask, handler, submit, submit_many
from tests.app.rows import columns
from tests.concurrency.connection_cutter import Wire
from tests.eventually import InBackground, at_once
from tests.queues.members import COMMIT
from tests.taskqueue.consumers import states, stream, task


def test_submitting_twice_under_one_key_is_one_task() -> None:
    stream()
    assert submit("oracle", "note", {"n": 1}, key="req").is_new
    assert not submit("oracle", "note", {"n": 2}, key="req").is_new
    assert Task.objects.get().params == '{"n": 1}'


def test_keys_are_told_apart_by_case_and_by_stream() -> None:
    stream()
    stream("other")
    assert all(submit(name, "note", key=key).is_new for name in ("oracle", "other") for key in ("a", "A"))


def test_many_at_once_under_one_key_are_one_task() -> None:
    stream()
    told = at_once(8, lambda _: submit("oracle", "note", key="req").is_new)
    assert sorted(told) == [False] * 7 + [True]


def test_a_task_that_is_submitted_in_a_transaction_goes_with_it() -> None:
    stream()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        submit("oracle", "note", key="a")
        submit("oracle", "note", key="a")
        raise ZeroDivisionError
    with transaction.atomic():
        submit("oracle", "note", key="b")
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            submit("oracle", "note", key="c")
            raise ZeroDivisionError
        assert [submit("oracle", "note", key=key).is_new for key in "bc"] == [False, True]
    assert states() == {"b": "ready", "c": "ready"}


def test_many_tasks_are_added_in_order_and_those_that_are_there_are_left_alone() -> None:
    stream()
    submit("oracle", "first", key="3")
    assert submit_many("oracle", (NewTask("note", {"n": n}, key=str(n)) for n in range(1_200))) == 1_199
    assert Task.objects.count() == 1_200
    assert Task.objects.get(key="3").type == "first"
    assert list(states())[:4] == ["3", "0", "1", "2"]


def test_many_large_tasks_are_added_in_one_call() -> None:
    stream()
    tasks = [NewTask("note", {"text": "名" * 20_000}, key=str(n)) for n in range(400)]
    assert submit_many("oracle", tasks) == 400
    assert list(states()) == [str(n) for n in range(400)]


def test_of_many_tasks_with_one_key_there_is_the_first() -> None:
    stream()
    assert submit_many("oracle", [NewTask("note", {"n": n}, key="same") for n in range(1_200)]) == 1
    assert task("same").params == '{"n": 0}'


@pytest.mark.parametrize("key", ["x" * 200, "😀" * 200, "a" * 199 + "A", "%s%%"])
def test_every_key_of_one_line_is_found_again(key: str) -> None:
    stream()
    assert submit("oracle", "note", key=key, lane=key).is_new
    assert not submit("oracle", "note", key=key).is_new
    assert submit_many("oracle", [NewTask("note", key=key)]) == 0


@contextlib.contextmanager
def isolation(level: str) -> Iterator[None]:
    session = {"mysql": "SET SESSION TRANSACTION", "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION"}
    statement = f"{session[connection.vendor]} ISOLATION LEVEL "
    with connection.cursor() as cursor:
        cursor.execute(statement + level)
        try:
            yield
        finally:
            cursor.execute(statement + "READ COMMITTED")


@pytest.mark.only("mysql", "postgresql")
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_key_that_is_newer_than_the_snapshot_of_the_callers_transaction_is_there(level: str) -> None:
    stream()
    stream("other")
    with isolation(level), transaction.atomic():
        assert Stream.objects.count() == 2  # its snapshot is made
        assert InBackground(lambda: submit("oracle", "first", key="a")).result(30).is_new
        assert not submit("oracle", "second", key="a").is_new
        assert submit("other", "second", key="a").is_new, "the transaction goes on"
        assert submit("oracle", "second", key="b").is_new
    types = Task.objects.filter(stream_id="oracle").values_list("key", "type")
    assert dict(types) == {"a": "first", "b": "second"}
    assert states("other") == {"a": "ready"}


@pytest.mark.only("mysql", "postgresql")
def test_a_task_whose_commit_was_not_answered_is_known_to_be_ones_own(wire: Wire) -> None:
    stream()
    wire.cut_after(COMMIT)
    assert submit("oracle", "note", key="a").is_new
    assert (wire.cuts, states()) == (1, {"a": "ready"})


@pytest.mark.only("mysql", "postgresql")
def test_where_no_row_is_left_of_a_task_that_is_done_its_submitter_is_told_that_nobody_knows(
    wire: Wire,
) -> None:
    stream(done_kept=0)
    wire.cut_after(COMMIT, meanwhile=Task.objects.all().delete)
    with pytest.raises(DatabaseUnavailable, match="oracle/a may have been submitted, and have been done since"):
        submit("oracle", "note", key="a")
    assert (wire.cuts, states()) == (1, {})


def test_a_task_may_be_submitted_while_autocommit_is_off() -> None:
    stream(address=1)
    transaction.set_autocommit(False)
    try:
        submit("oracle", "note", key="a")
        submit_many("oracle", [NewTask("note", key="b")])
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert states() == {"a": "ready", "b": "ready"}


def test_many_tasks_are_added_as_they_would_be_one_by_one() -> None:
    stream()
    at = timezone.now() - datetime.timedelta(days=1, microseconds=7)
    many = NewTask("note", {"名": "表 100%"}, key="many", lane="%s", task_time=at)
    assert submit_many("oracle", [many]) == 1
    submit("oracle", "note", {"名": "表 100%"}, key="single", lane="%s", task_time=at)
    one, other = (columns(task(key)) for key in ("many", "single"))
    assert one.pop("submitted_at") <= other.pop("submitted_at")
    assert 0 < one.pop("fence") <= other.pop("fence")
    assert other.pop("id") > one.pop("id")
    assert (one.pop("key"), other.pop("key")) == ("many", "single")
    assert one == other


def test_a_key_that_another_one_adds_in_the_meantime_is_one_task_and_not_counted() -> None:
    stream()
    faster = ["b"]

    def be_faster(send: Any, sql: str, *rest: Any) -> Any:
        result = send(sql, *rest)
        if faster and sql.startswith("SELECT") and Task._meta.db_table in sql:
            submit("oracle", "first", key=faster.pop())
        return result

    with connection.execute_wrapper(be_faster):
        assert submit_many("oracle", [NewTask("note", key=key) for key in "abc"]) == 2
    assert {key: task(key).type for key in "abc"} == {"a": "note", "b": "first", "c": "note"}


def test_of_many_tasks_none_is_added_when_one_is_not_allowed() -> None:
    stream()
    with pytest.raises(BadOption, match=r"tasks\[1\]\.type"):
        submit_many("oracle", [NewTask("note"), NewTask("")])
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"params": {"n": float("nan")}}, "params"),
        ({"params": [1]}, "params"),
        ({"params": {"n": object()}}, "params"),
        ({"params": {"n": "\ud800"}}, "params"),
        ({"params": {"n": "x" * 70_000}}, "params"),
        ({"key": ""}, "key"),
        ({"key": "x" * 201}, "key"),
        ({"key": "a\0b"}, "key"),
        ({"lane": 7}, "lane"),
        ({"lane": " a"}, "lane"),
        ({"task_time": datetime.datetime.min.replace(tzinfo=datetime.UTC)}, "task_time"),
        ({"task_time": datetime.datetime(2026, 1, 1)}, "task_time"),  # noqa: DTZ001
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_nothing_is_added(
    options: dict[str, Any], named: str
) -> None:
    stream()
    with pytest.raises(BadOption) as refused:
        submit("oracle", "note", **options)
    assert refused.value.name == named
    assert not Task.objects.exists()


def test_one_type_has_one_handler() -> None:
    some, other = cast("Any", states), cast("Any", stream)
    handler("note")(some)
    handler("note")(some)  # its module was imported again
    with pytest.raises(BadOption, match=r"one handler for each; it has tests\.taskqueue\.consumers\.states"):
        handler("note")(other)
    with pytest.raises(BadOption, match="max_runtime"):
        handler("other", max_runtime=-1)


def test_an_error_that_is_not_about_the_key_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    stream()

    def refuse(*_: object, **__: object) -> None:
        raise IntegrityError("another constraint")

    monkeypatch.setattr(Task, "save", refuse)
    with pytest.raises(IntegrityError, match="another constraint"):
        submit("oracle", "note", key="a")


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task whose commit has failed."""
    errors, commit = [OperationalError("database is locked")], connection._commit

    def fail() -> None:
        if errors:
            raise errors.pop()
        commit()

    stream()
    monkeypatch.setattr(connection, "_commit", fail)
    row = Task(stream_id="oracle", key="a", type="note")
    with pytest.raises(OperationalError):
        row.insert("default")
    return row


def test_a_task_whose_commit_failed_is_submitted_again_whatever_others_did_meanwhile(failed: Task) -> None:
    submit("oracle", "note", key="b")
    assert failed.insert("default")
    assert states() == {"b": "ready", "a": "ready"}


def test_a_task_whose_commit_failed_is_not_taken_for_one_that_another_has_submitted(failed: Task) -> None:
    submit("oracle", "note", key="takes the primary key of the one that failed, on SQLite")
    submit("oracle", "faster", key="a")
    assert not failed.insert("default")
    assert task("a").type == "faster"

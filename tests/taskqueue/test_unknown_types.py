"""A task of a type that its consumer has no handler for stays in its place."""

from resourcepool.status.work.streams import streams
from resourcepool.taskqueue import handler, submit
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, consuming, finished, states, stream, task

WHY = "no handler for type 'new' in the consumer's process"


def is_noted(key: str = "a") -> bool:
    return bool(task(key).outcome == WHY)


def test_it_stays_in_its_place_and_fails_nothing_and_runs_when_a_handler_is_there() -> None:
    stream(on_failure="skip")
    ran: list[str] = []
    handler("note")(lambda one: ran.append(one.key))
    submit("oracle", "new", key="a")
    submit("oracle", "note", key="b")
    with consuming():
        eventually(is_noted, WITHIN)
        assert states() == {"a": "ready", "b": "ready"}
        handler("new")(lambda one: ran.append(one.key))
        finished(2)
    assert (ran, task("a").attempts, task("a").failures) == (["a", "b"], 1, 0)


def test_why_it_stands_still_is_said() -> None:
    stream()
    submit("oracle", "new", key="a")
    with consuming() as consumer:
        eventually(lambda: is_noted() and consumer.term, WITHIN)
        eventually(lambda: streams("oracle")[0].leader, WITHIN)
        (found,) = streams("oracle")
    assert f"task a waits for a consumer with a handler for its type: {WHY}" in list(found.reasons())

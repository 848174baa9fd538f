"""A consumer that takes over after a crash waits for the stream's lock-delay."""

from resourcepool.models import Stream
from resourcepool.taskqueue import handler, submit
from tests.app.rows import change
from tests.eventually import eventually
from tests.taskqueue.consumers import WITHIN, consuming, finished, states, stream


def test_after_a_consumer_that_died_no_task_begins_in_the_lock_delay_and_it_can_be_stopped() -> None:
    row = stream(lock_delay=3_600)
    change(row, elected_term=1)
    handler("note")(lambda _: None)
    submit("oracle", "note", key="a")
    with consuming() as consumer:
        eventually(lambda: Stream.objects.get().elected_term > 1, WITHIN)
        assert consumer.term is None
    assert states() == {"a": "ready"}


def test_after_one_that_stopped_in_good_order_they_begin_at_once() -> None:
    stream(lock_delay=3_600)
    handler("note")(lambda _: None)
    for count in (1, 2):
        submit("oracle", "note")
        with consuming():
            finished(count)
    row = Stream.objects.get()
    assert row.resigned_term == row.elected_term

"""Why nobody gets a queue."""

import pytest

from resourcepool.queues.assignment import Member
from resourcepool.queues.planning import Standing, Worker
from resourcepool.stats.forecast import Unowned, kept, unowned
from resourcepool.stats.unowned import Candidate, why_nobody

EU, MARS = {"zone": "eu"}, {"zone": "mars"}
BOTH = {"zone": "eu", "disk": "ssd"}


@pytest.mark.parametrize(
    ("labels", "candidates", "said"),
    [
        ({}, [], "no server is up"),
        (MARS, [Candidate(EU)], "no living server has zone=mars"),
        (BOTH, [Candidate(EU)], "no living server has disk=ssd"),
        (BOTH, [Candidate(EU), Candidate({"disk": "ssd"})], "no living server has all of zone=eu, disk=ssd"),
        (EU, [Candidate(EU, is_draining=True), Candidate(MARS)], "every server that may have it is draining"),
        (
            EU,
            [Candidate(EU, is_full=True)],
            "every server that may have it has as many queues as its limit allows",
        ),
        (EU, [Candidate(EU)], "the servers have not shared it yet; a transaction may keep its row locked"),
    ],
)
def test_nobody_gets_a_queue_because(labels: dict[str, str], candidates: list[Candidate], said: str) -> None:
    assert why_nobody(labels, candidates) == said


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (
            [Candidate({}, is_full=True, name="A"), Candidate({}, is_full=True, name="B")],
            "pinned to A, which has no room; every server that may have it has as many queues as its limit allows",
        ),
        (
            [Candidate({}, is_full=True, name="B")],
            "every server that may have it has as many queues as its limit allows",
        ),
        ([Candidate({}, is_draining=True, name="A")], "every server that may have it is draining"),
    ],
)
def test_a_pin_is_named_where_there_is_a_server_for_it(candidates: list[Candidate], said: str) -> None:
    assert why_nobody({}, candidates, "A") == said


def test_labels_do_not_speak_to_the_terminal() -> None:
    assert why_nobody({"\x1b[31m": "\x07"}, [Candidate({})]).isprintable()


def test_queues_that_nobody_would_get_are_told_by_reason() -> None:
    queues = [Standing(pk, f"q{pk}", labels=MARS) for pk in range(1, 9)]
    queues += [Standing(10, "full"), Standing(11, "had", cur=1), Standing(12, "gone", is_retiring=True)]
    queues += [Standing(13, "pinned", pin="A")]
    staying = [Worker(Member(1, "A", limit=1))]
    assert unowned(queues, [], staying) == [
        Unowned("no living server has zone=mars", 8, ["q1", "q2", "q3", "q4", "q5"]),
        Unowned("every server that may have it has as many queues as its limit allows", 1, ["full"]),
        Unowned(
            "pinned to A, which has no room; every server that may have it has as many queues as its limit allows",
            1,
            ["pinned"],
        ),
    ]


def test_queues_that_stay_with_who_drains_are_told_by_reason() -> None:
    draining = Worker(Member(1, "A", labels=EU), is_draining=True)
    other = Worker(Member(2, "B"))
    queues = [Standing(pk, f"q{pk}", cur=1, labels=EU) for pk in range(1, 4)]
    queues += [Standing(4, "asked", cur=1, req=2), Standing(5, "elsewhere", cur=2)]
    why = "no living server has zone=eu"
    assert kept(queues, [], [draining, other]) == [Unowned(why, 3, ["q1", "q2", "q3"])]
    assert kept(queues[:1], [], [draining]) == [Unowned("no other server is up", 1, ["q1"])]
    assert kept(queues, [], [other]) == []

"""The judge of the queues must see every broken promise, and be fair."""

import pytest

from tests.chaos.remains import Remains
from tests.chaos.story import Span
from tests.chaos.test_judge import log
from tests.proof.findings import Findings
from tests.queues.proof.evidence import Change, Evidence, fewest
from tests.queues.proof.judge import BY_THE_CLOCK, KINDS, examine

OVERLAP, UNWORKED, CUT_OFF = "two servers at once", "queue unworked for too long", "work in hand lost its queue"


def found(text: str, **evidence: object) -> dict[str, int]:
    findings = examine(log(text), Evidence(**evidence))  # type: ignore[arg-type]
    return {kind: len(cases) for kind, cases in findings.violations.items() if cases}


def worked(*moments: float, server: int = 1, fence: int = 1) -> str:
    """Say that queue 7 was worked on at these moments."""
    first, *rest = moments
    lines = [f"{first} acquired {server} 7 {fence}", *(f"{moment} using {server} 7 {fence}" for moment in rest)]
    return "\n".join(lines) + "\n"


def test_nothing_happened_and_nothing_is_wrong() -> None:
    findings = examine([], Evidence())
    assert findings.is_clean
    assert set(findings.violations) == set(KINDS)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1 acquired 1 7 1\n2 acquired 2 7 2\n3 using 1 7 1", OVERLAP),
        ("1 acquired 1 7 5\n3 acquired 2 7 5", "fence not higher than before"),
        ("1 wrote 1 7 5 0 abc", "write lost"),
        ("1 using 1 7 5", "evidence that makes no sense"),
        ("1 started 1\n9 cut_off 1 7 5 8.9 lost", CUT_OFF),
        ("1 deadlock 1 0 0 0 1213", "deadlock or lock wait seen by a caller"),
        ("1 unexpected 1 0 0 0 ValueError", "undocumented error seen by a caller"),
        ("1 vanished 1", "server gone by itself"),
        ("1 begin 0\n" + worked(1.8, 2) + worked(8, 8.2, server=2, fence=2), UNWORKED),
        ("1 begin 0\n" + worked(7), UNWORKED),
        ("1 begin 0\n" + worked(1.8, 2) + "9 ending 0", UNWORKED),
    ],
)
def test_a_broken_promise_is_seen_in_the_log(text: str, kind: str) -> None:
    assert found(text) == {kind: 1}


@pytest.mark.parametrize(
    ("evidence", "kind"),
    [
        ({"writes": Remains([(7, 0, 2, "a"), (7, 2, 1, "b")], {7: 1})}, "late write behind the guard"),
        ({"left": ["B #2 is registered"]}, "something left behind"),
        ({"changes": [Change("join", Span(1, 40), is_settled=False)]}, "not settled in time"),
        (
            {"changes": [Change("join", Span(1, 2), {1: 6}, frozenset({1, 2}), moved=5)]},
            "more moves than needed",
        ),
    ],
)
def test_a_broken_promise_is_seen_in_what_is_left(evidence: dict[str, object], kind: str) -> None:
    assert found("", **evidence) == {kind: 1}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # The last evidence of a server about a queue is older than the first of the next server, however late it stops.
        (worked(1, 2) + worked(2.1, 3, server=2, fence=2), OVERLAP),
        # The database was unavailable, so no server could know anything.
        ("1 begin 0\n" + worked(1, 2) + "8 server_back 0 0 0 3\n" + worked(13, server=2, fence=2), UNWORKED),
        # The next owner of a dead server's queues crashed, too.
        ("1 begin 0\n" + worked(1, 2) + "2.1 killed 1\n6 killed 2\n" + worked(11, server=3, fence=3), UNWORKED),
        # It stood still in the middle of a guarded transaction: its queue is locked.
        (
            "1 begin 0\n1 started 1\n" + worked(1, 2) + "2 guards 1\n2.1 stopped 1\n9 continued 1\n"
            "9.1 acquired 2 7 2",
            UNWORKED,
        ),
        # It stood still.
        ("1 started 1\n2 stopped 1\n9 continued 1\n9.1 cut_off 1 7 5 1.9 lost", CUT_OFF),
        # Its heartbeat could not reach the database.
        ("1 started 1\n8 server_back 0 0 0 3\n9.1 cut_off 1 7 5 9 lost", CUT_OFF),
    ],
)
def test_what_has_an_excuse_is_let_pass(text: str, kind: str) -> None:
    assert kind not in found(text)


def test_one_death_excuses_no_more_than_the_interval_and_two_heartbeats() -> None:
    text = "1 begin 0\n1 started 1\n" + worked(1.8, 2) + "2.1 killed 1\n"
    assert UNWORKED in found(text + worked(7.5, server=2, fence=2))
    assert UNWORKED not in found(text + worked(6.5, server=2, fence=2))


def test_who_left_just_before_a_death_excuses_two_heartbeats_more() -> None:
    text = "1 begin 0\n1 started 1\n" + worked(1.8, 2) + "2.05 left 2\n2.1 killed 1\n"
    assert UNWORKED not in found(text + worked(8.5, server=2, fence=2))
    assert UNWORKED in found(text + worked(9.5, server=2, fence=2))


@pytest.mark.parametrize(
    ("before", "after", "least"),
    [
        ({}, set(), 0),
        ({1: 64}, {1}, 0),
        ({1: 64}, {1, 2}, 32),
        ({1: 11, 2: 11, 3: 11, 4: 11, 5: 10, 6: 10}, {1, 2, 3, 4, 5, 6, 7}, 9),
        ({1: 10, 2: 9, 3: 9}, {1, 2}, 9),
        ({1: 10, 2: 9, 3: 9}, {1, 2, 4}, 9),
        ({1: 4, 2: 0}, {1, 2}, 2),
    ],
)
def test_the_fewest_moves_are_counted(before: dict[int, int], after: set[int], least: int) -> None:
    assert fewest(before, after) == least


def test_one_move_more_than_the_fewest_is_let_pass() -> None:
    change = Change("join", Span(1, 2), {1: 6}, frozenset({1, 2}), moved=4)
    assert not found("", changes=[change])


def test_on_a_busy_machine_what_came_late_is_let_pass_and_two_servers_at_once_are_not() -> None:
    late = {kind: ["late"] for kind in BY_THE_CLOCK}
    assert not Findings(late).is_clean
    assert Findings(late, excused=BY_THE_CLOCK).is_clean
    assert not Findings({**late, OVERLAP: ["two"]}, excused=BY_THE_CLOCK).is_clean

"""The checker of chaos detects every broken promise, and reports no false ones."""

import pytest

from tests.chaos.judge import KINDS, examine
from tests.chaos.remains import Remains
from tests.concurrency.evidence import Event

TTL = 3.0


def log(text: str) -> list[Event]:
    """One event a line: second, what, worker, row, fence, since, text."""
    events = []
    for line in text.strip().splitlines():
        at, what, *rest = line.split()
        numbers, words = [word for word in rest[:4] if word[0].isdigit()], rest[4:]
        pid, pk, fence, since = [*numbers, "0", "0", "0", "0"][:4]
        events.append(Event(float(at), what, int(pid), int(pk), int(fence), float(since), " ".join(words)))
    return events


def found(text: str, **remains: object) -> dict[str, int]:
    findings = examine(log(text), Remains(**remains), TTL)  # type: ignore[arg-type]
    return {kind: len(cases) for kind, cases in findings.violations.items() if cases}


KILLED = """
    1 started 1
    1 started 2
    2 acquired 1 7 5
    10 killed 1
    30 ending
"""
WAITING = "{at} acquired 2 7 {fence} 9"


def test_nothing_happened_and_nothing_is_wrong() -> None:
    findings = examine([], Remains(), TTL)
    assert findings.is_clean
    assert set(findings.violations) == set(KINDS)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1 acquired 1 7 1\n2 acquired 2 7 3\n3 using 1 7 1", "two holders at once"),
        ("1 acquired 1 7 5\n2 releasing 1 7 5\n3 acquired 2 7 5", "fence not higher than before"),
        ("1 acquired 1 7 5\n2 found 0 7 4", "grant forgotten by the server"),
        ("1 wrote 1 7 5 0 abc", "write lost"),
        ("1 deadlock 1 0 0 0 1213", "deadlock or lock wait seen by a caller"),
        ("1 unexpected 1 0 0 0 ValueError", "undocumented error seen by a caller"),
        ("1 vanished 1", "worker gone by itself"),
        ("1 stayed 1", "worker gone by itself"),
        ("1 using 1 7 5", "evidence that makes no sense"),
        ("1 left 1 0 0 0 40", "session, thread, lease or ticket left behind"),
    ],
)
def test_a_broken_promise_is_seen_in_the_evidence(text: str, kind: str) -> None:
    assert found(text) == {kind: 1}


@pytest.mark.parametrize(
    ("remains", "kind"),
    [
        ({"steps": [(7, 0, 5, "a"), (7, 5, 4, "b")], "pages": {7: 4}}, "late write behind the guard"),
        ({"steps": [(7, 0, 5, "a"), (7, 0, 6, "b")], "pages": {7: 6}}, "late write behind the guard"),
        ({"steps": [(7, 0, 5, "a")], "pages": {7: 4}}, "late write behind the guard"),
        ({"connected_after": 2}, "session, thread, lease or ticket left behind"),
        ({"connected": 2}, "session, thread, lease or ticket left behind"),
        ({"taken": [7]}, "session, thread, lease or ticket left behind"),
        ({"waiting": 1}, "session, thread, lease or ticket left behind"),
    ],
)
def test_a_broken_promise_is_seen_in_what_is_left(remains: dict[str, object], kind: str) -> None:
    assert found("", **remains) == {kind: 1}


def test_writes_in_order_are_fine() -> None:
    steps = [(7, 0, 5, "a"), (8, 0, 2, "b"), (7, 5, 5, "c"), (7, 5, 9, "d")]
    assert found("3 wrote 1 7 9 0 d", steps=steps, pages={7: 9, 8: 2, 9: 0}) == {}


def test_what_was_granted_after_the_look_is_not_forgotten() -> None:
    assert (
        found("1 acquired 1 7 5\n2 releasing 1 7 5\n3 found 0 7 6\n4 acquired 2 7 7\n5 releasing 2 7 7") == {}
    )


class TestTakeover:
    @pytest.mark.parametrize(("at", "is_late"), [(13.4, False), (13.6, True)])
    def test_a_dead_holders_row_is_due_half_a_second_after_the_ttl(self, at: float, is_late: bool) -> None:
        assert bool(found(KILLED + WAITING.format(at=at, fence=6))) is is_late

    def test_a_row_that_nobody_had_again_is_late(self) -> None:
        assert found(KILLED + "20 timed_out 2 0 0 9") == {"dead holder's row left lying": 1}

    def test_a_row_that_nobody_wanted_is_not(self) -> None:
        assert found(KILLED + "20 acquired 2 7 6 19.9") == {}

    def test_a_grant_whose_holder_could_not_tell_explains_a_tickets_life(self) -> None:
        assert found(KILLED + WAITING.format(at=19.9, fence=7)) == {}
        assert found(KILLED + WAITING.format(at=20.1, fence=7)) != {}

    def test_a_grant_whose_holder_could_not_tell_explains_it_also_when_nobody_had_the_row_again(self) -> None:
        ended = KILLED.replace("30 ending", "19 ending")
        assert found(ended + "20 timed_out 2 0 0 9\n21 found 0 7 5") != {}
        assert found(ended + "20 timed_out 2 0 0 9\n21 found 0 7 6") == {}

    @pytest.mark.parametrize(("at", "is_late"), [(16.4, False), (16.6, True)])
    def test_what_came_with_others_lasts_as_long_as_a_ticket(self, at: float, is_late: bool) -> None:
        several = KILLED.replace("2 acquired 1 7 5", "1.1 asks_for_many 1\n    2 acquired 1 7 5 1.05")
        assert bool(found(several + WAITING.format(at=at, fence=6))) is is_late

    def test_who_asked_for_several_may_have_had_it_before_the_others(self) -> None:
        asks = "9.1 asks_for_many 2\n"
        assert found(KILLED + asks + WAITING.format(at=16, fence=6)) == {}
        assert found(KILLED + asks.replace(" 2", " 3") + WAITING.format(at=16, fence=6)) != {}

    def test_the_servers_absence_explains_a_delay(self) -> None:
        away = "14.5 server_back 0 0 0 12\n"
        assert found(KILLED + away + WAITING.format(at=19, fence=6)) == {}
        assert "dead holder's row left lying" in found(KILLED + away + WAITING.format(at=21, fence=6))

    @pytest.mark.parametrize(
        "pause",
        [
            "15 stalled 0 0 0 13",
            "13 stopped 2\n15 continued 2",
            "1 started 3\n12 asks_for_many 3\n13 stopped 3\n15 continued 3",
        ],
    )
    def test_a_pause_of_the_machine_or_of_whoever_was_next_explains_a_delay(self, pause: str) -> None:
        assert found(KILLED + pause + "\n" + WAITING.format(at=15.4, fence=6) + "\n15.5 using 2 7 6") == {}

    def test_rows_that_were_given_back_lay_as_long(self) -> None:
        lay = "12 acquired 2 8 1\n12.1 releasing 2 8 1\n13 acquired 3 8 3\n13.1 releasing 3 8 3\n"
        assert found(KILLED + lay + WAITING.format(at=14.3, fence=6)) != {}  # that was over before
        lay = "12 acquired 2 8 1\n12.1 releasing 2 8 1\n13.1 acquired 3 8 3\n13.2 releasing 3 8 3\n"
        assert found(KILLED + lay + WAITING.format(at=14.3, fence=6)) == {}
        assert found(KILLED + lay + WAITING.format(at=14.7, fence=6)) != {}

    def test_a_pause_of_somebody_else_does_not(self) -> None:
        text = KILLED + "1 started 3\n13 stopped 3\n15 continued 3\n" + WAITING.format(at=15.4, fence=6)
        assert "dead holder's row left lying" in found(text)

    def test_the_end_of_the_run_cuts_it_short(self) -> None:
        assert found("1 started 1\n2 acquired 1 7 5\n10 killed 1\n13.4 ending\n14 timed_out 2 0 0 9") == {}


class TestReturn:
    BACK = "1 started 1\n12 server_back 0 0 0 10\n30 ending\n"
    KIND = "not working again in time"

    def test_a_worker_that_gets_on_is_fine(self) -> None:
        assert found(self.BACK + "16.9 acquired 1 7 5") == {}

    def test_one_that_does_not_is_seen(self) -> None:
        assert found(self.BACK + "13 acquired 2 7 5") == {self.KIND: 1}
        assert found(self.BACK + "13 acquired 2 7 5\n17.1 timed_out 1 0 0 16") == {}

    def test_nobody_getting_on_is_seen_once(self) -> None:
        assert found(self.BACK) == {self.KIND: 1}
        assert found(self.BACK + "17.1 acquired 1 7 5 16") == {self.KIND: 1}

    @pytest.mark.parametrize(
        "excuse", ["13 killed 1", "13 stopped 1\n14 continued 1", "9 stopped 1\n13 continued 1"]
    )
    def test_one_that_could_not_run_is_excused(self, excuse: str) -> None:
        assert found(self.BACK + excuse) == {}

    def test_one_that_stood_in_line_is_excused_unless_it_was_passed(self) -> None:
        line = self.BACK + "20 acquired 1 7 5 14\n13 started 2\n"
        assert found(line + "16 acquired 2 8 5 13") == {}
        assert found(line + "16.5 acquired 2 8 5 16") == {self.KIND: 1}

    def test_a_run_that_ends_at_once_shows_nothing(self) -> None:
        assert found(self.BACK.replace("30 ending", "16 ending")) == {}


def test_the_figures_say_what_was_thrown_and_done() -> None:
    text = KILLED + "14 server_back 0 0 0 13\n" + WAITING.format(at=15, fence=6)
    findings = examine(log(text), Remains(), TTL)
    assert findings.figures["kill -9"] == 1
    assert findings.figures["server killed -9 and restarted"] == 1
    assert findings.figures["acquisitions"] == 2
    assert findings.figures["server back: first grant, worst"] == 1

"""The judge must detect every fault, or its verdicts mean nothing."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.concurrency.evidence import Event, Log
from tests.concurrency.judge import judge


def log(text: str) -> list[Event]:
    """Parse events, one per line: second, what, process, row, fence."""
    rows = [line.split() for line in text.strip().splitlines()]
    return [Event(float(at), what, *map(int, numbers)) for at, what, *numbers in rows]


CLEAN = """
    1 acquired  11 1 1
    2 using     11 1 1
    3 releasing 11 1 1
    4 acquired  12 1 3
    5 releasing 12 1 3
"""
OVERLAP = """
    1 acquired  11 1 1
    2 acquired  12 1 3
    3 using     11 1 1
"""
OVERLAP_WITH_ONE_BEFORE_THE_LAST = """
    1 acquired  11 1 1
    2 acquired  12 1 3
    3 releasing 12 1 3
    4 acquired  13 1 5
    5 releasing 13 1 5
    6 using     11 1 1
"""
FALLING = """
    1 acquired  11 1 7
    2 releasing 11 1 7
    3 acquired  12 1 5
    4 releasing 12 1 5
"""
REUSED = """
    1 acquired  11 1 7
    2 releasing 11 1 7
    3 acquired  12 1 7
    4 releasing 12 1 7
"""
TWO_ROWS = """
    1 acquired  11 1 1
    2 acquired  12 2 1
    3 using     11 1 1
    4 using     12 2 1
"""
DISORDERLY = """
    3 using     11 1 1
    1 acquired  11 1 1
    4 acquired  12 1 3
"""


@pytest.mark.parametrize(
    ("text", "uses", "overlaps", "unfenced"),
    [
        ("", 0, 0, 0),
        (CLEAN, 2, 0, 0),
        (OVERLAP, 2, 1, 0),
        (OVERLAP_WITH_ONE_BEFORE_THE_LAST, 3, 2, 0),
        (FALLING, 2, 0, 1),
        (REUSED, 2, 0, 1),
        (TWO_ROWS, 2, 0, 0),
        (DISORDERLY, 2, 0, 0),
    ],
)
def test_only_faults_are_reported(text: str, uses: int, overlaps: int, unfenced: int) -> None:
    verdict = judge(log(text))
    assert (len(verdict.uses), len(verdict.overlaps), len(verdict.unfenced)) == (uses, overlaps, unfenced)


def test_a_fault_is_reported_with_row_fence_and_processes() -> None:
    assert judge(log(OVERLAP)).overlaps == [
        "row 1 fence 1 by 11 from 1.000 to 3.000 and row 1 fence 3 by 12 from 2.000 to 2.000"
    ]


KILLED = """
    1 acquired  11 1 1
    2 using     11 1 1
    3 killed    11 0 0
"""


@pytest.mark.parametrize(
    ("text", "returned_after", "stranded"),
    [
        (KILLED, [], 1),
        (KILLED + "5 acquired 12 1 2", [2.0], 0),
        (KILLED + "5 acquired 12 1 2\n 6 releasing 12 1 2\n 7 acquired 13 1 4", [2.0], 0),
        (KILLED + "5 acquired 12 2 2", [], 1),
        (CLEAN + "6 killed 12", [], 0),
        # Lost, and held by another process long before its former holder was killed.
        ("1 acquired 11 1 1\n 4 acquired 12 1 2\n 5 killed 11\n 6 using 12 1 2", [], 0),
        ("1 killed 11", [], 0),
    ],
)
def test_rows_of_killed_holders_are_followed(text: str, returned_after: list[float], stranded: int) -> None:
    verdict = judge(log(text))
    assert (verdict.returned_after, len(verdict.stranded)) == (returned_after, stranded)


@pytest.mark.parametrize(
    "text",
    [
        "1 using 11 1 1",
        "1 acquired 11 1 1\n 2 acquired 11 1 1",
        "1 acquired 11 1 1\n 2 releasing 11 1 1\n 3 using 11 1 1",
    ],
)
def test_inconsistent_evidence_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="out of place"):
        judge(log(text))


def test_a_log_returns_what_was_written(tmp_path: Path) -> None:
    first, second = Log(tmp_path / "log"), Log(tmp_path / "log")
    first.note("acquired", SimpleNamespace(pk=3, fence=5, ensure_held=lambda: None))
    second.killed(77)
    events = first.events()
    assert [event[1:5] for event in events] == [("acquired", events[0].pid, 3, 5), ("killed", 77, 0, 0)]
    assert events[0].at <= events[1].at
    for one in (first, second):
        one.close()

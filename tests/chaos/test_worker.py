"""A worker's evidence is true whenever SIGTERM arrives."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.chaos.faults import crashes
from tests.chaos.worker import Worker
from tests.concurrency.judge import judge


@pytest.mark.parametrize("moment", ["before it is written", "after it is written"])
@pytest.mark.parametrize("line", ["acquired", "using"])
def test_a_worker_that_is_stopped_while_it_notes_something_leaves_evidence_that_makes_sense(
    tmp_path: Path, line: str, moment: str
) -> None:
    worker, lease = Worker(1, 1, tmp_path / "evidence"), Mock(pk=7, fence=5)
    worker.asked_at = 0.0
    tell = worker.log.tell

    def interrupted(what: str, **words: object) -> None:
        if what != line:
            tell(what, **words)  # type: ignore[arg-type]
            return
        if moment == "after it is written":
            tell(what, **words)  # type: ignore[arg-type]
        raise SystemExit

    worker.log.tell = interrupted  # type: ignore[method-assign, assignment]
    with pytest.raises(SystemExit), worker.released(lease):
        worker.note("acquired", lease)
        worker.note("using", lease)
    assert len(judge(worker.log.events()).uses) == (line == "using" or moment == "after it is written")


# The times of server kills.


@pytest.mark.parametrize(
    ("seconds", "every", "moments"),
    [(60, 20, [15, 35]), (20, 20, [5]), (8, 20, [2]), (60, 0, []), (100, 20, [15, 35, 55, 75])],
)
def test_the_server_is_killed_now_and_then_and_has_time_to_come_back(
    seconds: float, every: float, moments: list[float]
) -> None:
    assert crashes(seconds, every) == moments

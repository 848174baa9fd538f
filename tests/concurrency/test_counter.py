"""Mutual exclusion between processes: a counter in a file, protected only by the lease, must be exact."""

import time
from pathlib import Path

from resourcepool.models import Proxy
from tests.app.rows import columns, new
from tests.spawned import Spawner

PROCESSES, TIMES = 4, 25


def count(file: str) -> None:
    """Increment the number in ``file`` repeatedly."""
    for _ in range(TIMES):
        with Proxy.pool.lease(timeout=60):
            number = int(Path(file).read_text())
            time.sleep(0.001)  # wide enough for another process to come in between
            Path(file).write_text(str(number + 1))


def test_processes_count_exactly_under_a_lease(spawn: Spawner, tmp_path: Path) -> None:
    proxy, file = new(Proxy), tmp_path / "counter"
    file.write_text("0")
    for child in [spawn(count, str(file)) for _ in range(PROCESSES)]:
        child.succeed(timeout=150)
    assert int(file.read_text()) == PROCESSES * TIMES
    # One for each hand-over, two for each release and claim.
    assert PROCESSES * TIMES < columns(proxy)["fence"] <= 2 * PROCESSES * TIMES

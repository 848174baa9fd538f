"""Several processes acquire several rows at once: all or none, without a deadlock."""

import os
from collections import defaultdict
from pathlib import Path

import pytest

from resourcepool.models import Proxy
from tests.app.rows import several
from tests.concurrency.evidence import Log
from tests.concurrency.judge import judge
from tests.spawned import Spawner

ROUNDS = 15


def take_three(path: str, waits: bool) -> None:
    log, done = Log(path), 0
    while done < ROUNDS:
        leases = Proxy.pool.acquire_many(3, wait=waits, timeout=30, holder=f"{os.getpid()}, round {done}")
        if leases is None:
            continue
        assert len({lease.pk for lease in leases}) == 3
        done += 1
        for lease in leases:
            log.note("acquired", lease)
        for lease in leases:
            log.note("releasing", lease)
            lease.release()


@pytest.mark.parametrize("waits", [True, False])
def test_only_one_of_two_processes_holds_three_of_four_rows_and_never_a_part(
    spawn: Spawner, tmp_path: Path, waits: bool
) -> None:
    several(Proxy, 4)
    path = tmp_path / "log"
    children = [spawn(take_three, str(path), waits) for _ in range(2)]
    seen: dict[str, list[int]] = defaultdict(list)
    while any(child.process.poll() is None for child in children):
        now: dict[str, int] = defaultdict(int)
        for holder in Proxy.objects.held().values_list("holder", flat=True):
            now[holder] += 1
        for holder, count in now.items():
            seen[holder].append(count)
    for child in children:
        child.succeed(40)
    # They release one by one, so the number of rows that one round holds may fall. It rises only while one who waits
    # collects them; collected rows are not leased before the request is complete, as the evidence shows.
    assert waits or all(counts == sorted(counts, reverse=True) for counts in seen.values())
    log = Log(path)
    verdict = judge(log.events())
    log.close()
    assert len(verdict.uses) == 2 * ROUNDS * 3
    assert verdict.overlaps == []
    assert verdict.unfenced == []

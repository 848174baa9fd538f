"""Readers and writers in processes of their own, some of which are killed: a file outside the database tells the tale.

Each process appends a line when it is in, and one before it leaves; appended lines have one order. A killed process is
out when it is dead.
"""

import os
import random
import time
from pathlib import Path

import pytest

from resourcepool.exceptions import UpgradeConflict
from resourcepool.locks import RWLock
from resourcepool.models import RWLockPermit, Ticket
from tests.concurrency.tickets import lapse_after
from tests.eventually import eventually
from tests.spawned import Child, Spawner

ROUNDS, READERS, TTL = 12, 3, 1.5


def lock(**options: object) -> RWLock:
    return RWLock("catalogue", readers=READERS, ttl=TTL, **options)  # type: ignore[arg-type]


def say(file: str, word: str, pid: int | None = None) -> None:
    with Path(file).open("a") as log:
        log.write(f"{word} {pid or os.getpid()}\n")


def work(file: str, seed: int) -> None:
    """Read and write, upgrade and downgrade, in an order that the seed decides."""
    lapse_after(1.0)
    rng, mine = random.Random(seed), lock(timeout=120)
    for _ in range(ROUNDS):
        if rng.random() < 0.5:
            with mine.read() as held:
                say(file, "read")
                time.sleep(rng.uniform(0, 0.01))
                if rng.random() < 0.3:
                    try:
                        if mine.upgrade(timeout=120):
                            say(file, "write")
                    except UpgradeConflict:
                        pass
                held.ensure_held()
                say(file, "out")
        else:
            with mine.write() as held:
                say(file, "write")
                time.sleep(rng.uniform(0, 0.005))
                if rng.random() < 0.3:
                    say(file, "read")
                    mine.downgrade()
                    time.sleep(rng.uniform(0, 0.005))
                held.ensure_held()
                say(file, "out")
    print("done", flush=True)


def stay(file: str, side: str) -> None:
    """Hold it until the end."""
    lapse_after(1.0)
    with getattr(lock(timeout=120), side)():
        say(file, side)
        print("in", flush=True)
        time.sleep(600)


def wait_to_write(file: str) -> None:
    lapse_after(1.0)
    with lock(timeout=600).write():
        say(file, "write")
        print("in", flush=True)
        time.sleep(600)


def wait_to_upgrade(file: str) -> None:
    lapse_after(1.0)
    with lock(timeout=600).read():
        say(file, "read")
        lock().upgrade(timeout=600)
        say(file, "write")
        time.sleep(600)


def kill(child: Child, file: str) -> None:
    child.kill()
    say(file, "out", child.pid)


def judge(file: Path) -> tuple[int, int]:
    """Return how often one read and wrote; fails where one read beside a writer, or two wrote."""
    inside: dict[str, str] = {}
    counts = {"read": 0, "write": 0}
    for number, line in enumerate(file.read_text().splitlines()):
        word, pid = line.split()
        if word == "out":
            inside.pop(pid, None)
            continue
        inside[pid] = word
        counts[word] += 1
        if "write" in inside.values():
            assert len(inside) == 1, f"line {number}: {inside}"
        assert len(inside) <= READERS
    return counts["read"], counts["write"]


def test_nobody_reads_beside_a_writer_whoever_is_killed(spawn: Spawner, tmp_path: Path) -> None:
    file = str(tmp_path / "log")
    workers = [spawn(work, file, seed) for seed in range(3)]
    for side in ("read", "write"):
        victim = spawn(stay, file, side)
        victim.line("in")
        kill(victim, file)
    for worker in workers:
        worker.line("done", timeout=100)
        worker.succeed()
    reads, writes = judge(tmp_path / "log")
    assert reads >= 3
    assert writes >= 3


def test_what_a_killed_writer_has_collected_comes_free(spawn: Spawner, tmp_path: Path) -> None:
    file = str(tmp_path / "log")
    with lock().read():
        collects = spawn(wait_to_write, file)
        eventually(lambda: RWLockPermit.objects.filter(name="catalogue").held().count() == READERS)
        assert lock().read().owned()
        kill(collects, file)
        other = spawn(stay, file, "read")
        other.line("in")
        kill(other, file)
    with lock(timeout=60).write():
        say(file, "write")
        say(file, "out")
    judge(tmp_path / "log")


def test_a_killed_upgrader_leaves_neither_its_intent_nor_its_permits(spawn: Spawner, tmp_path: Path) -> None:
    file = str(tmp_path / "log")
    with lock().read() as held:
        upgrades = spawn(wait_to_upgrade, file)
        eventually(lambda: Ticket.objects.waiting().filter(priority=-2).exists())
        with pytest.raises(UpgradeConflict):
            lock().upgrade(timeout=60)
        kill(upgrades, file)
        rows = RWLockPermit.objects
        eventually(lambda: not rows.filter(key="catalogue#upgrade").held().exists())
        assert lock().upgrade(timeout=60) is held
        say(file, "write")
        say(file, "out")
    judge(tmp_path / "log")
    assert not rows.held().exists()


def test_writers_are_not_starved_by_readers_that_never_leave_a_gap(spawn: Spawner, tmp_path: Path) -> None:
    """Two processes read, one always before the other ends: after each one's turn a writer still comes."""
    file = str(tmp_path / "log")
    readers = [spawn(keep_reading, file, str(tmp_path / "stop")) for _ in range(3)]
    eventually(lambda: RWLockPermit.objects.filter(name="catalogue").held().count() >= 2)
    for _ in range(5):
        with lock(timeout=120).write() as held:
            say(file, "write")
            held.ensure_held()
            say(file, "out")
    (tmp_path / "stop").touch()
    for reader in readers:
        reader.succeed()
    assert judge(tmp_path / "log")[1] == 5


def keep_reading(file: str, stop: str) -> None:
    while not Path(stop).exists():
        with lock(timeout=120).read():
            say(file, "read")
            time.sleep(0.02)
            say(file, "out")

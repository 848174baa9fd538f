"""The classic programs of the textbooks with real processes: a bounded buffer, readers and writers, five philosophers.

What they protect are files, which no database watches: two at a fork, or a reader beside a writer, fail there.
"""

import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from resourcepool.locks import Condition, Lock, RWLock
from tests.spawned import Child, Spawner

PHILOSOPHERS, WRITERS, READERS, PRODUCERS, CONSUMERS = 5, 2, 3, 2, 2
ROOM = 3
ROUNDS = 15
PATIENCE = 120  # seconds; longer: it hangs

Start = Callable[..., Child]


def add_one(file: Path) -> None:
    """Count, in a way that loses what another one counts at the same time."""
    file.write_text(str(int(file.read_text()) + 1))


# Dining philosophers: half of them take the lower fork first, so no circle can close; or they put a fork down again.


def dine(place: str, number: int, rounds: int, way: str) -> None:
    folder, meals = Path(place), 0
    left, right = number, (number + 1) % PHILOSOPHERS
    for _ in range(rounds):
        eaten = False
        while not eaten:
            eaten = in_order(folder, left, right) if way == "in order" else with_timeout(folder, left, right)
        meals += 1
    (folder / f"meals {number}").write_text(str(meals))


def in_order(folder: Path, left: int, right: int) -> bool:
    with Lock(f"fork {min(left, right)}"), Lock(f"fork {max(left, right)}"):
        eat(folder, left, right)
    return True


def with_timeout(folder: Path, left: int, right: int) -> bool:
    with Lock(f"fork {left}"):
        second = Lock(f"fork {right}")
        if not second.acquire(timeout=random.uniform(0.01, 0.1)):
            return False
        try:
            eat(folder, left, right)
        finally:
            second.release()
    return True


def eat(folder: Path, *forks: int) -> None:
    for fork in forks:
        os.close(os.open(folder / f"fork {fork} in use", os.O_CREAT | os.O_EXCL))  # fails if it is in use
    for fork in forks:
        add_one(folder / f"fork {fork}")
        (folder / f"fork {fork} in use").unlink()


def philosophers(start: Start, folder: Path, rounds: int, way: str) -> int:
    """Let five of them eat, and see that each fork was used as often as its two neighbours ate; returns the meals."""
    for fork in range(PHILOSOPHERS):
        (folder / f"fork {fork}").write_text("0")
    run([start(dine, str(folder), number, rounds, way) for number in range(PHILOSOPHERS)])
    meals = [int((folder / f"meals {number}").read_text()) for number in range(PHILOSOPHERS)]
    used = [int((folder / f"fork {fork}").read_text()) for fork in range(PHILOSOPHERS)]
    assert used == [meals[fork] + meals[fork - 1] for fork in range(PHILOSOPHERS)]
    assert all(meals)
    return sum(meals)


# Readers and writers: of a document in two files, which say the same unless somebody is writing.


def write(place: str, number: int, rounds: int) -> None:
    folder, written = Path(place), 0
    for _ in range(rounds):
        with RWLock("document", readers=READERS).write():
            add_one(folder / "page 1")
            add_one(folder / "page 2")
        written += 1
    (folder / f"written {number}").write_text(str(written))


def read(place: str, number: int, rounds: int) -> None:
    folder, before = Path(place), 0
    for _ in range(rounds):
        with RWLock("document", readers=READERS).read():
            first, second = (int((folder / f"page {page}").read_text()) for page in (1, 2))
        assert before <= first == second, (before, first, second)
        before = first


def readers_and_writers(start: Start, folder: Path, rounds: int) -> int:
    """Let them read and write, and see that nothing written was lost; returns how often it was written."""
    for page in (1, 2):
        (folder / f"page {page}").write_text("0")
    children = [start(write, str(folder), number, rounds) for number in range(WRITERS)]
    run([*children, *(start(read, str(folder), number, rounds) for number in range(READERS))])
    written = sum(int((folder / f"written {number}").read_text()) for number in range(WRITERS))
    assert [int((folder / f"page {page}").read_text()) for page in (1, 2)] == [written, written]
    return written


# The bounded buffer: two conditions of one lock.


def buffer(what: str) -> Condition:
    return Condition(Lock("buffer"), f"buffer {what}")


def content(folder: Path) -> list[str]:
    found: list[str] = json.loads((folder / "buffer").read_text())
    return found


def store(folder: Path, items: list[str]) -> None:
    assert len(items) <= ROOM
    (folder / "buffer").write_text(json.dumps(items))


def produce(place: str, number: int, rounds: int) -> None:
    folder = Path(place)
    with (folder / f"produced {number}").open("w") as log:
        for item in range(rounds):
            with buffer("has room") as held:
                buffer("has room").wait_for(lambda: len(content(folder)) < ROOM)
                assert held.is_held
                store(folder, [*content(folder), f"{number}.{item}"])
                log.write(f"{number}.{item}\n")
                buffer("has items").notify()


def consume(place: str, number: int) -> None:
    folder = Path(place)
    with (folder / f"consumed {number}").open("w") as log:
        while True:
            with buffer("has items"):
                item, *rest = buffer("has items").wait_for(lambda: content(folder))
                if item == "end":
                    break
                store(folder, rest)
                log.write(f"{item}\n")
                buffer("has room").notify()


def bounded_buffer(start: Start, folder: Path, rounds: int) -> int:
    """Let items pass through the buffer, and see that each came out once; returns how many."""
    store(folder, [])
    consumers = [start(consume, str(folder), number) for number in range(CONSUMERS)]
    run([start(produce, str(folder), number, rounds) for number in range(PRODUCERS)])
    with buffer("has room"):
        buffer("has room").wait_for(lambda: not content(folder))
        store(folder, ["end"])
        buffer("has items").notify_all()
    for consumer in consumers:
        consumer.succeed(PATIENCE)
    produced, consumed = (
        sorted(line for file in folder.glob(f"{way} *") for line in file.read_text().splitlines())
        for way in ("produced", "consumed")
    )
    assert produced == consumed
    return len(produced)


def run(children: Sequence[Child]) -> None:
    for child in children:
        child.succeed(PATIENCE)


@pytest.mark.parametrize("way", ["in order", "with timeouts"])
def test_five_philosophers_all_eat(spawn: Spawner, tmp_path: Path, way: str) -> None:
    meals = philosophers(spawn, tmp_path, ROUNDS, way)
    assert meals == PHILOSOPHERS * ROUNDS


def test_readers_see_what_one_writer_wrote_and_no_writer_is_lost(spawn: Spawner, tmp_path: Path) -> None:
    assert readers_and_writers(spawn, tmp_path, ROUNDS) == WRITERS * ROUNDS


def test_a_bounded_buffer_gives_every_item_to_one_consumer(spawn: Spawner, tmp_path: Path) -> None:
    assert bounded_buffer(spawn, tmp_path, ROUNDS) == PRODUCERS * ROUNDS

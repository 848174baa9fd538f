"""What ``benchmarks.dispenser`` measures, with workers in processes of their own."""

import multiprocessing
import statistics
import time
from typing import Any

from django.db import connection

from benchmarks import fleet
from benchmarks.handing import WORKERS, Ours, Plain
from resourcepool.taskqueue import TaskDispenser
from resourcepool.taskqueue.dispenser.models import Dispenser, DispenserTask

CONTEXT = multiprocessing.get_context("fork")
LIMIT, LIMITS = 20, (20, 100)
SECONDS = 4.0
TASKS = 20_000  # to be drained
MANY, CHANGED = 100_000, 1_000
SMALL, LARGE, HANDED_OUT = 1_000, 1_000_000, 200_000


class Dispensing:
    """Each part prints a line or more; ``times``: how thoroughly."""

    def __init__(self, times: int) -> None:
        self.times = times

    def cycles(self) -> None:
        """Assign 20 and finish 20, in turns with the plain driver."""
        for processes in (1, 8):
            found: dict[str, list[float]] = {Ours.name: [], Plain.name: []}
            for turn in range(self.times):
                for kind in (Ours, Plain) if turn % 2 else (Plain, Ours):
                    found[kind.name].append(_cycles(kind, processes))
            ours, plain = (statistics.median(found[kind.name]) for kind in (Ours, Plain))
            print(
                f"  assign {LIMIT} + done {LIMIT}, {processes} processes: {_range(found[Ours.name])} tasks/s,"
                f" plain driver {_range(found[Plain.name])}, share {ours / plain:.2f}",
                flush=True,
            )

    def drain(self) -> None:
        """Have 8 workers finish 20,000 tasks of no work."""
        for limit in LIMITS:
            rates = []
            for _ in range(self.times):
                fill("drain", TASKS)
                rates.append(TASKS / _drained("drain", limit))
                assert DispenserTask.objects.filter(state="done").count() == TASKS
            print(f"  {TASKS:,} tasks drained, limit {limit}: {_range(rates)} tasks/s", flush=True)

    def add(self) -> None:
        """Put 100,000 tasks into an empty pool."""
        _empty()
        mapping = {f"task {n}": n * 0.5 for n in range(MANY)}
        began = time.monotonic()
        added = TaskDispenser("add").add_many(mapping)
        print(f"  add_many of {added:,}: {time.monotonic() - began:.2f} s", flush=True)

    def rebuild(self) -> None:
        """Rebuild a pool of 100,000 of which 1 % is different, while a worker is handed tasks."""
        for _ in range(self.times):
            fill("rebuild", MANY)
            mapping: dict[str, float] = {f"task {n}": float(n) for n in range(MANY)}
            half, quarter = CHANGED // 2, CHANGED // 4
            step = MANY // CHANGED
            for number in range(half):
                mapping[f"task {(2 * number + 1) * step}"] = 0.5 + (number * 7919) % MANY
            for number in range(quarter):
                del mapping[f"task {4 * number * step}"]
                mapping[f"new {number}"] = float(number * 31)
            took, result, alone, beside = _rebuilt("rebuild", mapping)
            print(
                f"  rebuild of {len(mapping):,}: {took:.2f} s; {result.added} added, {result.changed} changed,"
                f" {result.retired} retired; assigns: longest alone {_ms(max(alone))}, beside it {_ms(max(beside))}"
                f" (median {_ms(statistics.median(beside))} of {len(beside)})",
                flush=True,
            )

    def size(self) -> None:
        """Hand out of a pool of 1,000 and of one of 1,000,000, by one worker."""
        small = []
        for _ in range(10 * self.times):
            fill("size", SMALL)
            small.append(_in_a_row("size", SMALL))
        print(f"  pool of {SMALL:,}: {_range(small)} tasks/s", flush=True)
        fill("size", LARGE)
        large = [_in_a_row("size", 10 * SMALL) for _ in range(self.times)]
        print(f"  pool of {LARGE:,}: {_range(large)} tasks/s", flush=True)
        _drained("size", 100, HANDED_OUT)
        late = [_in_a_row("size", 10 * SMALL) for _ in range(self.times)]
        print(f"  the same, {HANDED_OUT:,} handed out just before: {_range(late)} tasks/s", flush=True)


def fill(dispenser: str, count: int) -> None:
    """Have this dispenser be the only one, with so many tasks."""
    _empty()
    dispensed = TaskDispenser(dispenser)
    dispensed.add("task 0", 0.0)
    columns = [
        field.column
        for field in DispenserTask._meta.concrete_fields
        if field.name not in ("id", "key", "score")
    ]
    names, number = ", ".join(columns), "seq" if connection.vendor == "mysql" else "s"
    series = f"seq_1_to_{count - 1}" if connection.vendor == "mysql" else f"generate_series(1, {count - 1})"
    key = connection.ops.quote_name("key")
    table = DispenserTask._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({key}, score, {names}) SELECT CONCAT('task ', s.{number}), s.{number},"
            f" {', '.join(f't.{one}' for one in columns)} FROM {table} t, {series} s"
        )
        cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")


def _empty() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE TABLE {DispenserTask._meta.db_table}")
    Dispenser.objects.all()._raw_delete("default")


def _cycles(kind: Any, processes: int) -> float:
    """Return how many tasks a second went through all workers together."""
    fill("cycles", 10 * MANY if processes > 1 else 2 * MANY)

    def prepare(number: int) -> fleet.Work:
        return fleet.cycles(kind("cycles", f"worker {number}", LIMIT), 0.0)

    connection.close()  # a child must not share it
    tallies = fleet.run(processes, prepare, SECONDS)
    for tally in tallies:
        if tally.errors:
            raise RuntimeError(tally.errors[0])
    return sum(len(tally.waits) for tally in tallies) * LIMIT / SECONDS


def _drained(dispenser: str, limit: int, most: int | None = None) -> float:
    """Have 8 workers finish all that there is, or so many; return how many seconds that took."""

    def work(number: int, pipe: Any) -> None:
        client, left = Ours(dispenser, f"worker {number}", limit), most // WORKERS if most else None
        connection.ensure_connection()
        pipe.send(True)
        pipe.recv()
        while left is None or left > 0:
            got = client.once()
            if not got:
                break
            left = left - got if left is not None else None
        pipe.send([time.monotonic()])

    connection.close()
    pipes = []
    for number in range(WORKERS):
        ours, theirs = CONTEXT.Pipe()
        CONTEXT.Process(target=work, args=(number, theirs), daemon=True).start()
        pipes.append(ours)
    for pipe in pipes:
        fleet.heard(pipe, fleet.START_TIMEOUT)
    began = time.monotonic()
    for pipe in pipes:
        pipe.send(True)
    return float(max(fleet.heard(pipe, 200.0)[0] for pipe in pipes) - began)


def _in_a_row(dispenser: str, count: int) -> float:
    """Return at how many tasks a second one worker finishes so many."""
    client = Ours(dispenser, "alice", LIMIT)
    began = time.monotonic()
    for _ in range(count // LIMIT):
        client.once()
    return count / (time.monotonic() - began)


def _rebuilt(dispenser: str, mapping: dict[str, float]) -> tuple[float, Any, list[float], list[float]]:
    """Rebuild while somebody assigns; return how long that took, what it did, and the assigns before and beside it."""

    def work(pipe: Any) -> None:
        client = Ours(dispenser, "beside", LIMIT)
        client.once()
        pipe.send(True)
        times: list[tuple[float, float]] = []
        while not pipe.poll():
            began = time.monotonic()
            client.assign()
            times.append((began, time.monotonic()))
            client.finish()
        pipe.send([times])

    connection.close()
    ours, theirs = CONTEXT.Pipe()
    CONTEXT.Process(target=work, args=(theirs,), daemon=True).start()
    fleet.heard(ours, fleet.START_TIMEOUT)
    connection.ensure_connection()
    time.sleep(2.0)
    began = time.monotonic()
    result = TaskDispenser(dispenser).recreate_task_pool(mapping, as_of=None)
    ended = time.monotonic()
    ours.send(True)
    (times,) = fleet.heard(ours, 30.0)
    alone = [end - start for start, end in times if end < began]
    beside = [end - start for start, end in times if end >= began and start <= ended]
    return ended - began, result, alone, beside


def _range(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:,.1f} ms"

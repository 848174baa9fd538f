"""What ``benchmarks.streams`` measures, with consumers in processes of their own."""

import random
import signal
import statistics
import time

from django.db import connection

from benchmarks.consumers import WITHIN, consumers
from benchmarks.consuming import TYPE, use_hints
from benchmarks.fleet import quantile
from resourcepool.elections import Election
from resourcepool.models import Stream
from resourcepool.taskqueue import NewTask, submit, submit_many
from tests.eventually import eventually

TTL = 2.0  # seconds that a term lasts where failover is measured
PAUSES = (0.5, 1.0)  # seconds between two submissions to an idle stream, drawn evenly
SETTLED, COUNTED = 30.0, 20.0  # seconds
LANES = (1, 8)
QUESTIONS = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'"


class Streaming:
    """Each part prints a line or two; ``times``: how thoroughly; ``figures``: what is compared with others."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.figures: dict[str, float | list[float]] = {}
        use_hints()

    def submits(self) -> None:
        """Submit one after the other, and many in one call."""
        Stream.objects.create(name="submits")
        began, until = time.monotonic(), time.monotonic() + self.times
        count = 0
        while time.monotonic() < until:
            submit("submits", TYPE, {"n": count}, key=f"single {count}")
            count += 1
        self.figures["submit"] = count / (time.monotonic() - began)
        print(f"  submit: {self.figures['submit']:,.0f} tasks/s", flush=True)
        for many in (10_000, 100_000)[: self.times]:
            tasks = [NewTask(TYPE, {"n": n}, key=f"{many} {n}") for n in range(many)]
            began = time.monotonic()
            submit_many("submits", tasks)
            took = time.monotonic() - began
            self.figures.setdefault("submit_many", many / took)  # of 10,000, as many as others
            print(f"  submit_many of {many:,}: {took:.2f} s, {many / took:,.0f} tasks/s", flush=True)

    def done(self) -> None:
        """Have one leader do tasks that do nothing."""
        for lanes in LANES:
            name, many = f"done {lanes}", 500 * self.times
            Stream.objects.create(name=name, lanes=lanes)
            submit_many(name, [NewTask(TYPE, key=str(n), lane=str(n % lanes)) for n in range(many)])
            with consumers(name, 1) as (_, notes):
                eventually(lambda notes=notes, many=many: len(notes.begun()) == many, WITHIN)  # type: ignore[misc]
                moments = sorted(notes.begun().values())
            self.figures[f"done {lanes}"] = speed = many / (moments[-1] - moments[0])
            print(f"  {lanes} lanes: {speed:,.0f} tasks/s", flush=True)

    def start(self) -> None:
        """Submit now and then to a stream that has nothing to do."""
        Stream.objects.create(name="start")
        with consumers("start", 1) as (_, notes):
            _leader("start")
            took = [
                notes.after_submitting("start", str(n), random.uniform(*PAUSES)) for n in range(12 * self.times)
            ]
        took.sort()
        self.figures["start"] = took
        print(
            f"  submit to start: p50 {_ms(quantile(took, 0.5))}, p99 {_ms(quantile(took, 0.99))},"
            f" longest {_ms(took[-1])} of {len(took)}",
            flush=True,
        )

    def failover(self) -> None:
        """Kill the leader, or stop it in good order; a task is there that the next one begins."""
        Stream.objects.create(name="failover", term_ttl=TTL)
        for what, sent in (("kill -9", signal.SIGKILL), ("clean stop", signal.SIGTERM)):
            took = [self._failover(sent, f"{what} {turn}") for turn in range(self.times)]
            self.figures[what] = took
            median, longest = _ms(statistics.median(took)), _ms(max(took))
            print(f"  {what}, term of {TTL:g} s: next task after {median} (longest {longest})", flush=True)

    def _failover(self, sent: int, key: str) -> float:
        with consumers("failover", 2) as (processes, notes):
            holder = _leader("failover")
            eventually(Election("failover", Stream).standbys, WITHIN)
            time.sleep(random.uniform(*PAUSES))
            (leader,) = [process for process in processes if f"/{process.pid}/" in holder]
            Stream.objects.filter(pk="failover").update(is_paused=True)
            time.sleep(3)  # until the leader knows: the next task must be the next leader's
            submit("failover", TYPE, key=key)
            Stream.objects.filter(pk="failover").update(is_paused=False)
            at = time.monotonic()
            leader.send_signal(sent)
            eventually(lambda: key in notes.begun(), WITHIN)
            return notes.begun()[key] - at

    def idle(self) -> None:
        """Count what a consumer without tasks asks the server."""
        if connection.vendor != "mysql":
            return
        Stream.objects.create(name="idle")
        with consumers("idle", 1):
            _leader("idle")
            time.sleep(SETTLED)
            before, began = _questions(), time.monotonic()
            time.sleep(COUNTED)
            asked = _questions() - before - 1
            print(f"  idle: {asked / (time.monotonic() - began):.2f} statements/s", flush=True)


def _leader(stream: str) -> str:
    """Return the holder of a term that has begun."""
    leader = eventually(Election(stream, Stream).leader, WITHIN)
    assert leader is not None
    return leader.holder


def _questions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(QUESTIONS)
        return int(cursor.fetchone()[0])


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:,.1f} ms"

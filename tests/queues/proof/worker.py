"""One server: it works on its queues in the loop of docs/reference/queues.md, and logs its evidence."""

import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

from django.db import connection

from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.queues import QueueServer
from tests.chaos.writing import write
from tests.concurrency.evidence import Log
from tests.queues.proof.terms import QUEUE_GROUP

SHORT, LONG = (0.002, 0.012), (0.2, 0.4)  # seconds of one piece of work
LONG_ONES, GUARDED = 0.02, 0.1  # shares of them
GUARDED_ON_SQLITE = 0.02  # where a guarded piece of work has the whole file
PAUSE = 0.2  # seconds between two attempts to register


class Worker:
    """Goes on until SIGTERM (stops as a service does) or SIGUSR2 (just leaves the block)."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.number, self.log = number, Log(path, who=number)
        self.chance = random.Random(f"{seed}/{number}")
        self.is_done = False
        self.guarded = GUARDED_ON_SQLITE if connection.vendor == "sqlite" else GUARDED
        self.seen: set[tuple[int, int]] = set()

    def work(self) -> None:
        server = QueueServer(QUEUE_GROUP, name=f"server {self.number}")
        for number in (signal.SIGTERM, signal.SIGUSR2):
            signal.signal(number, lambda number, _: self.end(server, number))
        threads = 0
        while not self.is_done:
            try:
                with server:
                    threads = max(threads, self.loop(server))
            except DatabaseUnavailable:
                self.log.tell("unavailable")
                time.sleep(PAUSE)
            except Exception as error:  # noqa: BLE001 (the judge decides what may be raised)
                self.log.tell("unexpected", text=f"{type(error).__name__}: {error}")
                time.sleep(PAUSE)
        self.log.tell("left", text=str(threads))

    def end(self, server: QueueServer, number: int) -> None:
        self.is_done = True
        if number == signal.SIGTERM:
            server.stop()

    def loop(self, server: QueueServer) -> int:
        while not (server.stopping or self.is_done):
            for queue in server.queues():
                self.one_piece(queue)
                if self.is_done:
                    break
        return threading.active_count()

    def one_piece(self, queue: Any) -> None:
        began, is_in_hand = time.monotonic(), False
        try:
            with queue.working():
                is_in_hand = True
                self.note(queue)
                if self.chance.random() < self.guarded:
                    self.log.tell("guards")
                    write(self.log, self.chance, queue)
                time.sleep(self.chance.uniform(*(LONG if self.chance.random() < LONG_ONES else SHORT)))
                self.note(queue)
        except LeaseLost as error:
            if is_in_hand:
                self.log.tell("cut_off", pk=queue.pk, fence=queue.fence, since=began, text=str(error))

    def note(self, queue: Any) -> None:
        """Note that the queue is used; raises LeaseLost, noting nothing, if this server may not."""
        is_known = (queue.pk, queue.fence) in self.seen
        self.log.note("using" if is_known else "acquired", queue)
        self.seen.add((queue.pk, queue.fence))

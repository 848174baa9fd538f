"""One process: publishes, reads under two names beside all others, and listens; and notes outside what it saw."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django.db import DatabaseError, InterfaceError, connection, connections, transaction

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.locks.channels.position import Message
from tests.chaos.models import Step
from tests.concurrency.evidence import Log
from tests.locks.channels.proof.terms import CHANNEL, MESSAGES, NAMES, TTL

AWAY = (DatabaseError, InterfaceError, DatabaseUnavailable)
PAUSE = 0.05  # seconds
UNANSWERED = 20  # of so many messages one is tried again after its commit, and one ends the subscription


class Worker:
    """Does so until SIGTERM."""

    def __init__(self, number: int, seed: int, path: Path) -> None:
        self.number, self.log, self._is_stopping = number, Log(path, who=number), False

    def work(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        works = [self._publish, self._listen, *(lambda name=name: self._read(name) for name in NAMES)]
        threads = [threading.Thread(target=self._again_and_again, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(PAUSE)  # a signal is handled in between
        self.log.tell("left")

    def _stop(self) -> None:
        self._is_stopping = True

    def _again_and_again(self, work: Callable[[], None]) -> None:
        while not self._is_stopping:
            try:
                work()
            except (*AWAY, LeaseLost, AcquireTimeout):
                connection.close()
                time.sleep(PAUSE)
            except Exception as error:  # noqa: BLE001 (the judge decides what may be raised)
                self.log.tell("unexpected", text=f"{type(error).__name__}: {error}")
                time.sleep(PAUSE)
        connections.close_all()

    def _publish(self) -> None:
        found = ChannelRow.objects.filter(pk=CHANNEL).values_list("last", flat=True)
        channel, number = Channel(CHANNEL), found.first() or 0
        while not self._is_stopping:
            if number >= MESSAGES:
                time.sleep(PAUSE)
                continue
            self._sequence = getattr(self, "_sequence", 0) + 1
            try:
                number = channel.publish([self.number, self._sequence])
            except AWAY:
                self.log.tell("unknown", fence=self._sequence)
                raise
            self.log.tell("published", pk=number, fence=self._sequence)

    def _listen(self) -> None:
        with Channel(CHANNEL).subscribe(stop=lambda: self._is_stopping, ttl=TTL) as messages:
            self.log.tell("listens", pk=messages.cursor)
            for message in messages:
                self._note("heard", message)

    def _read(self, name: str) -> None:
        options = {"from_": "start", "stop": lambda: self._is_stopping, "ttl": TTL}
        with Channel(CHANNEL).subscribe(name, **options) as messages:  # type: ignore[arg-type]
            for message in messages:
                self._note(name, message)
                self._finish(name, message)
                if message.number % UNANSWERED == 0:  # as if its commit had got no answer
                    with contextlib.suppress(LeaseReleased):
                        self._finish(name, message)
                elif message.number % UNANSWERED == 1:
                    raise InterfaceError("no answer")

    def _finish(self, name: str, message: Message) -> None:
        with transaction.atomic():
            effect = {"page": NAMES.index(name), "before": message.number, "fence": self.number}
            Step._default_manager.create(**effect, mark=name)
            message.done()

    def _note(self, what: str, message: Message) -> None:
        who, sequence = message.payload
        self.log.tell(what, pk=message.number, fence=sequence, text=str(who))

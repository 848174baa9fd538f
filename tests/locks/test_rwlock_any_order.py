"""Whatever several threads do with a read-write lock, in whatever order: it behaves like its model."""

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.db import connections
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from resourcepool.exceptions import LeaseLost, NotHeld, UpgradeConflict
from resourcepool.locks import RWLock
from resourcepool.locks.registry import current_owner
from resourcepool.models import RWLockPermit
from tests.app.rows import expire
from tests.state_machines import check

TTL = 1_000.0  # seconds: nothing runs out by itself
CLIENTS = 3
a_client = st.integers(0, CLIENTS - 1)


@dataclass
class Client:
    """What a thread should have: how often, how many permits, and whether it has lost them."""

    reads: int = 0
    writes: int = 0
    permits: int = 0
    is_writing: bool = False
    is_upgraded: bool = False
    is_lost: bool = False

    @property
    def has_it(self) -> bool:
        return self.reads + self.writes > 0


class AReadWriteLock(RuleBasedStateMachine):
    """Three threads, of which nobody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 3
        self._sweep()
        self.clients = [Client() for _ in range(CLIENTS)]
        self.threads = [ThreadPoolExecutor(1) for _ in range(CLIENTS)]

    def teardown(self) -> None:
        for thread in self.threads:
            thread.submit(connections.close_all).result()
            thread.shutdown()

    def lock(self) -> RWLock:
        return RWLock("any", readers=self.number, ttl=TTL)

    def by(self, client: int, call: Callable[..., Any], *args: Any) -> Any:
        return self.threads[client].submit(call, *args).result()

    def free(self) -> int:
        return self.number - sum(one.permits for one in self.clients)

    @rule(client=a_client)
    def read(self, client: int) -> None:
        one = self.clients[client]
        if one.is_lost:
            self.refused(client, LeaseLost, lambda: self.lock().read().acquire(blocking=False))
            return
        held = self.by(client, lambda: self.lock().read().acquire(blocking=False))
        assert (held is not None) == (one.has_it or self.free() > 0)
        if held is not None:
            one.permits = one.permits or 1
            one.reads += 1

    @rule(client=a_client)
    def write(self, client: int) -> None:
        one = self.clients[client]
        if one.is_lost or (one.has_it and not one.is_writing):
            error = LeaseLost if one.is_lost else UpgradeConflict
            self.refused(client, error, lambda: self.lock().write().acquire(blocking=False))
            return
        held = self.by(client, lambda: self.lock().write().acquire(blocking=False))
        assert (held is not None) == (one.is_writing or self.free() == self.number)
        if held is not None:
            one.permits, one.is_writing = self.number, True
            one.writes += 1

    @rule(client=a_client, writing=st.booleans())
    def release(self, client: int, writing: bool) -> None:
        one = self.clients[client]
        side = self.lock().write() if writing else self.lock().read()
        if not (one.writes if writing else one.reads):
            self.refused(client, NotHeld, side.release)
            return
        with contextlib.suppress(LeaseLost) if one.is_lost else contextlib.nullcontext():
            self.by(client, side.release)
        one.writes -= writing
        one.reads -= not writing
        if not one.has_it:
            self.clients[client] = Client()
        elif one.is_writing and not one.writes and not one.is_upgraded:
            self._reads_only(one)

    @rule(client=a_client)
    def downgrade(self, client: int) -> None:
        one = self.clients[client]
        if one.is_lost or not one.is_writing:
            self.refused(client, LeaseLost if one.is_lost else NotHeld, lambda: self.lock().downgrade())
            return
        self.by(client, self.lock().downgrade)
        self._reads_only(one)

    @rule(client=a_client)
    def upgrade(self, client: int) -> None:
        one = self.clients[client]
        if one.is_lost or not one.has_it:
            self.refused(
                client, LeaseLost if one.is_lost else NotHeld, lambda: self.lock().upgrade(blocking=False)
            )
            return
        done = self.by(client, lambda: self.lock().upgrade(blocking=False)) is not None
        assert done == (one.is_writing or self.free() == self.number - 1)
        if done and not one.is_writing:
            one.permits, one.is_writing, one.is_upgraded = self.number, True, True

    @rule(client=a_client)
    @precondition(lambda self: any(one.permits for one in self.clients))
    def what_one_has_expires(self, client: int) -> None:
        one = self.clients[client]
        if one.permits:
            for lease in self.by(client, self._hold).leases:
                expire(RWLockPermit.objects.get(pk=lease.pk))
                lease._lose("expired")
            one.is_lost, one.permits = True, 0

    @rule(number=st.integers(1, 4))
    @precondition(lambda self: not any(one.has_it for one in self.clients))
    def unused_rows_are_swept_and_made_again(self, number: int) -> None:
        self.number = number
        self._sweep()
        with self.lock().read():
            pass

    @invariant()
    def as_many_rows_are_held_as_should_be(self) -> None:
        assert RWLockPermit.objects.filter(name="any").held().count() == sum(
            one.permits for one in self.clients
        )

    @invariant()
    def nobody_reads_beside_a_writer(self) -> None:
        believe = [self.by(client, self._belief) for client in range(CLIENTS)]
        assert "write" not in believe or believe.count("") == CLIENTS - 1
        for one, belief in zip(self.clients, believe, strict=True):
            assert belief == ("write" if one.is_writing else "read") * (one.has_it and not one.is_lost)

    def refused(self, client: int, error: type[Exception], call: Callable[[], Any]) -> None:
        try:
            self.by(client, call)
        except error:
            return
        raise AssertionError(f"{error.__name__} should have been raised")

    def _reads_only(self, one: Client) -> None:
        one.permits, one.is_writing, one.is_upgraded = min(one.permits, 1), False, False

    def _sweep(self) -> None:
        RWLockPermit.objects.all().delete()

    def _hold(self) -> Any:
        return current_owner().holds[self.lock().key]

    def _belief(self) -> str:
        if self.lock().write().owned():
            return "write"
        return "read" if self.lock().read().owned() else ""


def test_it_behaves_like_its_model() -> None:
    check(AReadWriteLock, steps=30)

"""Conditions that note whom they notified, and who was woken by that; some die at that very moment."""

import os
import random
import signal
import time
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db.sync_async import Mode
from resourcepool.leases.terms import Grant, Request
from resourcepool.locks import Condition, Lock, notifications
from resourcepool.locks.lockable import LockLease
from resourcepool.locks.notifications import NotificationLease
from resourcepool.locks.registry import current_owner
from resourcepool.models import ConditionWaiter
from resourcepool.waiting import release
from tests.concurrency.evidence import Log

DIE = 0.1  # of those who are notified


class _Noted(NotificationLease):
    """Notes, before it is removed, that its waiter was woken by it and has the lock again."""

    condition: "NotedCondition"

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        hold = current_owner().holds.get(self.condition.lock.key)
        if self.is_consumed and hold is not None and not hold.leases[0].is_released:
            self.condition.log.tell("taken", pk=_ticket(self.pk), fence=self.fence)
        return super()._send_release(connection)


class NotedCondition(Condition):
    """Notes how each wait and each ``notify`` ended."""

    lease = _Noted

    def __init__(self, lock: Lock, name: str, log: Log, chance: random.Random | None = None) -> None:
        super().__init__(lock, name)
        self.log, self._chance = log, chance

    def handle(self, using: str, grant: Grant, request: Request) -> LockLease:
        """Return the handle of a notification, which notes that it is used; or die: then it is to be passed on."""
        if self._chance is not None and self._chance.random() < DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        handle = super().handle(using, grant, request)
        assert isinstance(handle, _Noted)
        handle.condition = self
        return handle

    async def _run_wait(self, mode: Mode, seconds: float) -> bool:
        began = time.monotonic()
        is_notified = await super()._run_wait(mode, seconds)
        until = began + seconds  # it stood in line so long at least, unless it was notified
        self.log.tell("woken" if is_notified else "late", since=began, text=f"{until:.6f} {self.name}")
        return is_notified

    def _notify(self, count: int) -> int:
        began = time.monotonic()
        # When it began: who stood in line by then had released the lock before.
        self.lock._require_hold("notify")
        told = super()._notify(count)
        self.log.tell("told", since=began, fence=told, text=self.name)
        return told


def note_notifications(log: Log) -> None:
    """Have this process note whom it has notified, and what was removed because nobody was in line for it any more."""
    wake, free = notifications._wake, release._free_if_nobody_waits

    def notified(using: str, chosen: Sequence[Any]) -> None:
        for ticket in chosen:
            log.tell("notified", pk=ticket.pk)
        wake(using, chosen)

    def given_back(connection: BaseDatabaseWrapper, model: Any, pk: Any, fence: int, *rest: Any) -> bool:
        is_over = True  # also if the reply does not come
        try:
            is_over = free(connection, model, pk, fence, *rest)
        finally:
            if is_over and model is ConditionWaiter:
                log.tell("given_back", pk=_ticket(pk))
        return is_over

    notifications._wake, release._free_if_nobody_waits = notified, given_back


def _ticket(key: str) -> int:
    return int(key.rpartition("#")[2])

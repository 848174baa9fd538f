"""A node that runs no handlers itself: it hands each timer that is due to another process, such as a Celery worker."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial

from django.db import connections

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.database.wakeup import Wakeup
from resourcepool.leases.terms import default_holder
from resourcepool.taskqueue.timers import claiming, handling
from resourcepool.taskqueue.timers.batches import MOST_AHEAD, Batches
from resourcepool.taskqueue.timers.claiming import Claimed, Due
from resourcepool.taskqueue.timers.nodes import Node

logger = logging.getLogger(__name__)

PAUSE = 1.0  # seconds after the broker was found away

Send = Callable[[int, int, float | None], object]
"""Sends the primary key and the fence of a timer, and the seconds for which its handler may run (None: any time)."""

HandOver = Callable[[], AbstractContextManager[Send]]
"""Returns a context that raises at its start while nothing can be sent."""


class Handing(Batches):
    """The turns of such a node.

    Each timer is first set aside in the database, under a new fence, and then sent. What gets lost on the way, or is
    taken by nobody, is handed over again; a message that comes late finds another fence.
    """

    def __init__(
        self, using: str, node: Node, threads: int, late_rate: float, wakeup: Wakeup, by: HandOver
    ) -> None:
        super().__init__(using, node, threads, late_rate, wakeup)
        self._by, self._paused_until = by, 0.0

    def _room(self) -> int:
        return MOST_AHEAD if monotonic() >= self._paused_until else 0

    def _exchange(self, due: list[Due]) -> int:
        """Hand over what is due; while the broker is away, nothing in the database is changed."""
        with ExitStack() as stack:
            try:
                send = stack.enter_context(self._by())
            except Exception as error:  # noqa: BLE001 (any of any broker)
                logger.warning("timers: cannot be handed over: %s: %s", type(error).__name__, error)
                self._paused_until = monotonic() + PAUSE
                return len(due)  # no reason to look again at once
            handed = self._set_aside(due)
            for number, one in enumerate(handed):
                try:
                    self._send(send, one)
                except Exception as error:  # noqa: BLE001
                    left, why = len(handed) - number, f"{type(error).__name__}: {error}"
                    logger.warning("timers: %d wait to be handed over again: %s", left, why)
                    self._paused_until = monotonic() + PAUSE
                    break
        if len(due) >= MOST_AHEAD:
            self._wakeup.ring()  # there may be more
        return len(handed)

    def _set_aside(self, due: list[Due]) -> list[Claimed]:
        asked_for, rules = self._ask_for(due)
        set_aside = partial(claiming.hand_over, self._using, asked_for, rules, self._holder)
        handed = retrying(connections[self._using], set_aside)
        self._holder, self._asked_for = default_holder(), {}
        late = {one.pk for one in asked_for if one.is_late}
        self._rate.take(sum(one.pk in late for one in handed))
        return handed

    @staticmethod
    def _send(send: Send, one: Claimed) -> None:
        handler = handling.find(one.rule.name)
        send(one.pk, one.fence, None if handler is None else handler.max_runtime)

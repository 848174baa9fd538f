"""The guards of conditions and barriers: no notification is lost, nor given to two."""

from tests.guards.mutation import LINE, Mutation

ENTERING = "waiting/acquire.py"
CONDITION, NOTIFICATIONS, BARRIER = (
    f"locks/conditions/{name}.py" for name in ("condition", "notifications", "barrier")
)
TESTS = ("tests/locks/test_condition.py", "tests/locks/test_notifying.py")

CONDITIONS = (
    Mutation(
        "conditions: a notification is for those who wait at that moment",
        "waiting/handover.py",
        "delete if model.deletes_idle_rows else update",
        "update",
        ("tests/locks/test_cancelled_anywhere.py",),
    ),
    Mutation(
        "conditions: in line before the lock is free",
        ENTERING,
        "waiter.set_ticket(tickets.take(connection, waiter.model, request, waiter.holder))",
        "request.fifo_once or waiter.set_ticket(tickets.take(connection, waiter.model, request, waiter.holder))",
        TESTS,
    ),
    Mutation(
        "conditions: who has lost the place wakes up",
        LINE,
        "waiter.outcome.serve([])",
        "waiter.set_ticket(tickets.take(self._connection, waiter.model, waiter.request, waiter.holder)); continue",
        TESTS,
    ),
    Mutation(
        "conditions: one DELETE decides who is late",
        LINE,
        "elif waiter.is_late and tickets.leave(self._connection, [waiter.ticket.pk]):",
        "elif waiter.is_late and (tickets.leave(self._connection, [waiter.ticket.pk]) or True):",
        TESTS,
    ),
    Mutation(
        "conditions: a cancelled task takes a notification with it",
        CONDITION,
        "        mode.soon(consume, notified or ())",
        "        await mode.call(consume, notified or ())",
        ("tests/locks/test_cancelled_anywhere.py",),
    ),
    Mutation(
        "conditions: a wait ends the session that the lock was taken with",
        "locks/conditions/notifications.py",
        ", fifo_once=True, ends_session=True)",
        ", fifo_once=True)",
        ("tests/locks/test_condition_sessions.py",),
        "mariadb",
    ),
    Mutation(
        "conditions: so does the wait for the lock after it",
        "locks/lock.py",
        ", ends_session=True)",
        ")",
        ("tests/locks/test_condition_sessions.py",),
        "mariadb",
    ),
    Mutation(
        "conditions: nobody waits without the lock",
        CONDITION,
        'hold, is_away = self.lock.require_hold("wait"), False',
        "from resourcepool.locks.registry import holds_of, current_owner\n"
        "        hold, is_away = holds_of(current_owner()).get(self.lock.key), False",
        TESTS,
    ),
    Mutation(
        "conditions: nobody notifies without the lock",
        CONDITION,
        'self.lock.require_hold("notify")\n        return await',
        "return await",
        TESTS,
    ),
    Mutation(
        "conditions: who is interrupted passes it on",
        CONDITION,
        "await mode.call(release_quietly, notified)",
        "await mode.call(consume, notified or ())",
        TESTS,
    ),
    Mutation(
        "conditions: who is not told that it was notified passes it on",
        CONDITION,
        "if notified and (removed := pass_on_unconsumed(notified)):",
        "if removed := 0:",
        TESTS,
    ),
    Mutation(
        "conditions: a signal does not take the lock away",
        CONDITION,
        "await mode.either(partial(self.lock.acquire_again_interrupted, hold), again)",
        "pass",
        TESTS,
    ),
    Mutation(
        "conditions: a notification is used up",
        NOTIFICATIONS,
        "lease.is_consumed = True",
        "lease.is_consumed = False",
        TESTS,
    ),
    Mutation(
        "conditions: it takes the lock back however long that takes",
        "locks/lock.py",
        "request = dataclasses.replace(self._request(math.inf, hold)",
        "request = dataclasses.replace(self._request(self._timeout, hold)",
        TESTS,
    ),
    Mutation(
        "conditions: what was notified is not waiting any more",
        NOTIFICATIONS,
        "SET {one.is_waiting} = {db_dialect.false}, ",
        "SET ",
        TESTS,
    ),
    Mutation(
        "conditions: a lost reply is settled",
        NOTIFICATIONS,
        "settle=attempt.settle",
        "settle=None",
        TESTS,
        "mariadb",
    ),
    Mutation(
        "barriers: looked at once in line",
        BARRIER,
        "on_enqueued=partial(self._recheck, fence=awaited)",
        "on_enqueued=None",
        ("tests/locks/test_barrier.py",),
    ),
    Mutation(
        "barriers: the look waits for who removes it",
        BARRIER,
        "self._row(connection).select_for_update()",
        "self._row(connection)",
        ("tests/locks/test_barrier.py",),
        "mariadb",
    ),
    Mutation(
        "barriers: one that is freed is removed",
        BARRIER,
        "[lease for lease in notified if lease.pk == self._pk]",
        "[lease for lease in notified if lease.pk == 0]",
        ("tests/locks/test_barrier.py",),
    ),
    Mutation(
        "barriers: who wakes up without a reason waits on",
        BARRIER,
        "current = await mode.call(self._fence)  #",
        "return True  #",
        ("tests/locks/test_barrier.py",),
    ),
)

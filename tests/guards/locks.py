"""The guards of locks: who may release one, who may take it again, and whose line is whose."""

from tests.guards.mutation import LINE, LOOK, SCAN, Mutation

LOCK, LOCKABLE, HOLD, REGISTRY, BASE = (
    f"locks/{name}.py" for name in ("lock", "lockable", "hold", "registry", "base")
)
TESTS = ("tests/locks/test_lock.py",)
OWNERS = ("tests/locks/test_owners.py",)
CYCLES = "status/locks/cycles.py"
PER_NAME = ("tests/waiting/test_poll_per_name.py", *TESTS)

LOCKS = (
    Mutation(
        "lock: only its holder releases it",
        LOCK,
        'if hold is None:\n            raise self._not_held("release it")',
        'if False:\n            raise self._not_held("release it")',
        TESTS,
    ),
    Mutation(
        "lock: released as often as it was taken",
        LOCK,
        "        if hold.count > 1:\n            hold.count -= 1\n            return\n",
        "",
        TESTS,
    ),
    Mutation(
        "lock: who waits while all is released holds what it gets",
        REGISTRY,
        "            owner.holds.clear()\n",
        "            owner.holds = {}\n",
        ("tests/locks/test_bulk_release.py",),
    ),
    Mutation(
        "lock: what was to be let go is not renewed",
        "leases/keeper.py",
        "[lease for lease in list(self._kept) if lease._is_renewed]",
        "list(self._kept)",
        ("tests/locks/test_forgotten.py",),
    ),
    Mutation(
        "lock: taken again only while it is held",
        LOCKABLE,
        "            hold.ensure_held()\n            hold.count",
        "            hold.count",
        TESTS,
    ),
    Mutation(
        "lock: a task is a holder of its own",
        REGISTRY,
        "return asyncio.current_task(loop) if loop else None",
        "return None",
        TESTS,
    ),
    Mutation(
        "lock: a thread that ended keeps nothing, though its hold is kept",
        HOLD,
        "super()._is_orphaned or (self.is_of_owner and has_ended(self.holder))",
        "super()._is_orphaned",
        OWNERS,
    ),
    Mutation(
        "lock: a task of a closed loop keeps nothing",
        REGISTRY,
        "task is None or task.done() or task.get_loop().is_closed()",
        "task is None or task.done()",
        OWNERS,
    ),
    Mutation(
        "lock: a task that ended keeps nothing",
        REGISTRY,
        "task is None or task.done() or task.get_loop().is_closed()",
        "task is None or task.get_loop().is_closed()",
        OWNERS,
    ),
    Mutation(
        "a task that waits in a closed loop leaves the line",
        LINE,
        "                waiter.outcome.cancel()\n        done = ",
        "                pass\n        done = ",
        OWNERS,
    ),
    Mutation(
        "what a task of a closed loop never got is not renewed",
        "leases/lease.py",
        "return loop is None or loop.is_closed()",
        "return False",
        OWNERS,
    ),
    Mutation(
        "a subscriber in a closed loop is not told of messages",
        "locks/channels/poller.py",
        "                self.remove(subscriber)\n        try:",
        "                pass\n        try:",
        OWNERS,
    ),
    Mutation("lock: nobody's is not renewed for ever", HOLD, "        self._stop_renewing()\n", "", TESTS),
    Mutation(
        "lock: a name is plain text",
        "options.py",
        "return str.__str__(value)",
        "return value",
        ("tests/locks/test_names.py",),
    ),
    Mutation(
        "lock: a generator does not run under it",
        LOCKABLE,
        "if any(is_generator(called) for is_generator in GENERATORS):",
        "if False:",
        TESTS,
    ),
    Mutation(
        "lock: a lease does not keep its own hold alive",
        BASE,
        "on_lost=hold._when_lost)",
        "on_lost=hold._note_loss)",
        ("tests/locks/test_forgotten.py",),
    ),
    Mutation(
        "lock: the loss of one row is that of the hold",
        HOLD,
        "return min((lease.remaining",
        "return max((lease.remaining",
        ("tests/locks",),
    ),
    Mutation(
        "a line per name: tickets",
        "waiting/models.py",
        'return f"{pool}:{selector}" if model.line_per_name else pool',
        "return pool",
        PER_NAME,
    ),
    Mutation(
        "a line per name: releases",
        "waiting/models.py",
        'return str(model.name_of(pk)) if model.line_per_name else "{}"',
        'return "{}"',
        PER_NAME,
    ),
    Mutation(
        "a line per name: rows that were removed are made again",
        SCAN,
        "if not seen.free and seen.next_in is None and model.line_per_name:",
        "if False:",
        PER_NAME,
    ),
    Mutation(
        "a line per name: its front is looked at",
        LOOK,
        "for waiter in sorted(waiters, key=PLACE):",
        "for waiter in sorted(waiters, key=PLACE, reverse=True):",
        PER_NAME,
    ),
    Mutation(
        "a line per name: who is behind the served is looked at",
        LINE,
        "is_moving |= waiter.model.line_per_name",
        "is_moving = False",
        PER_NAME,
    ),
    Mutation(
        "a line per name: pauses count from its last move",
        "waiting/waiter.py",
        "since = max(self.began, self.pacing.moved_at) if self.model.line_per_name else self.began",
        "since = self.began",
        PER_NAME,
    ),
    Mutation(
        "wait cycles: what a ticket has collected is not held",
        CYCLES,
        "if not holder or holder in collecting:",
        "if not holder:",
        ("tests/status/locks/test_cycles.py",),
    ),
    Mutation(
        "wait cycles: what a ticket has collected may be given to others",
        CYCLES,
        "            if not holder or holder in collecting:\n                free[name] += count\n            else:",
        "            if not holder:\n                free[name] += count\n            elif holder not in collecting:",
        ("tests/status/locks/test_cycles.py",),
    ),
)

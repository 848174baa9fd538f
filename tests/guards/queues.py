"""Mutations of changes to queues, and of the handle of a queue."""

from tests.guards.mutation import HANDLES, MEMBERS, SERVERS, Mutation

MOVING = "queues/reassignment.py"
HELD = "queues/serving/held_queue.py"
MOVES = ("tests/queues/test_reassignment.py", "tests/queues/test_planning_transactions.py")
RESTS = ("tests/queues/test_postponed_plans.py",)

QUEUES = (
    # The change
    Mutation(
        "queues: a new owner has a new fence",
        MOVING,
        'fence=F("fence") + 1, since=DbNow()',
        "since=DbNow()",
        MOVES,
    ),
    Mutation(
        "queues: the time of the first request stays",
        MOVING,
        'requested_at=Coalesce(F("requested_at"), DbNow())',
        "requested_at=DbNow()",
        MOVES,
    ),
    Mutation(
        "queues: a server releases only its own queues",
        MOVING,
        "if queue.cur == server]",
        "]",
        MOVES,
    ),
    Mutation(
        "queues: only one of many servers that notice a dead server plans",
        MOVING,
        "if if_due and not is_due(locked, servers, using):",
        "if False:",
        MOVES,
    ),
    Mutation(
        "queues: a server reports when work began",
        "queues/serving/snapshot.py",
        "        rows.update(last_activity_at=moment, in_hand=in_hand)\n",
        "        del moment\n",
        ("tests/queues/serving/test_activity.py",),
    ),
    Mutation(
        "queues: a locked row postpones the next plan",
        MOVING,
        "if (queue_group.micros_of_rest or 0) > 0:",
        "if False:",
        RESTS,
    ),
    Mutation(
        "queues: no server checks for a postponed plan",
        "queues/serving/snapshot.py",
        "rest = max(0.0, (row.micros_of_rest or 0) / 1_000_000)",
        "rest = 0.0",
        RESTS,
    ),
    Mutation(
        "queues: a plan begins with the row of the queue group",
        MOVING,
        '    QueueGroup.objects.using(using).filter(pk=queue_group).update(generation=F("generation"))\n',
        "",
        MOVES,
    ),
    Mutation(
        "queues: a change raises the generation",
        MOVING,
        'columns |= {"generation": F("generation") + 1, ',
        "columns |= {",
        MOVES,
    ),
    Mutation(
        "queues: a shorter deadline begins when it is set",
        "queues/models.py",
        "requested.update(requested_at=DbNow())",
        "pass",
        HANDLES,
    ),
    Mutation(
        "queues: owners learn of a shorter deadline",
        "queues/models.py",
        "is_shorter = row.filter(handover_timeout__gt=self.handover_timeout).update(generation=following)",
        "is_shorter = row.filter(handover_timeout__gt=self.handover_timeout).exists()",
        HANDLES,
    ),
    Mutation(
        "queues: owners learn of a longer deadline",
        "queues/models.py",
        "row.filter(handover_timeout__lt=self.handover_timeout).update(generation=following)",
        "pass",
        HANDLES,
    ),
    Mutation(
        "queues: a deadline that is not saved restarts no request",
        "queues/models.py",
        'if "handover_timeout" not in (kwargs.get("update_fields") or ("handover_timeout",)):',
        "if False:",
        ("tests/queues/test_administration.py",),
    ),
    Mutation(
        "queues: a stale instance resets no planner column",
        "queues/models.py",
        "if fields is not None or value[0].name not in self.planner_columns]",
        "]",
        ("tests/queues/test_administration.py",),
    ),
    Mutation(
        "queues: READ COMMITTED transactions may plan",
        MOVING,
        "if connection.in_atomic_block and not dialect.of(connection).reads_committed(connection):",
        "if connection.in_atomic_block:",
        MOVES,
    ),
    Mutation(
        "queues: a hand-over updates idle servers",
        MOVING,
        "        if any(change.changes_owner for change in outcome.changes):\n",
        "        if False:\n",
        MOVES,
    ),
    Mutation(
        "queues: a server with its first queue is not idle",
        MOVING,
        "if has_queues and since is not None], None)",
        "if False], None)",
        MOVES,
    ),
    Mutation(
        "queues: a server without queues is idle",
        MOVING,
        "if not has_queues and since is None], DbNow())",
        "if False], DbNow())",
        MOVES,
    ),
    # The handle
    Mutation(
        "queues: a late owner's guard fails",
        HELD,
        "filter(pk=self.pk, cur_server=server.pk, fence=self.fence)",
        "filter(pk=self.pk)",
        HANDLES,
    ),
    Mutation(
        "queues: guard matches the fence",
        HELD,
        "filter(pk=self.pk, cur_server=server.pk, fence=self.fence)",
        "filter(pk=self.pk, cur_server=server.pk)",
        HANDLES,
    ),
    Mutation(
        "queues: guard checks that the server is alive",
        HELD,
        "if not Server.objects.using(using).alive().filter(pk=server.pk, fence=server.fence).exists():",
        "if False:",
        HANDLES,
    ),
    Mutation(
        "queues: guard that sees its server dead does not end the handle",
        HELD,
        'raise LeaseLost(f"{self} is not confirmed: the transaction',
        'self.end(LeaseLost("dead"))\n            raise LeaseLost(f"{self} is not confirmed: the transaction',
        HANDLES,
    ),
    Mutation(
        "queues: a handle ends with its server's heartbeat",
        HELD,
        "if not self._owner.lease.is_held:",
        "if False:",
        (*HANDLES, *SERVERS),
    ),
    Mutation(
        "queues: a handle ends before a take-over",
        HELD,
        "if monotonic() >= self.reliable_until:",
        "if False:",
        HANDLES,
    ),
    Mutation(
        "queues: a handle in doubt is not relied on",
        HELD,
        "if self.is_leaving or self.is_in_doubt:",
        "if self.is_leaving:",
        MEMBERS,
    ),
    Mutation(
        "queues: lost work fails at its end",
        HELD,
        "            self.ensure_held()  # before `finish`, after which it may be handed over at once\n",
        "",
        HANDLES,
    ),
)

"""The guards of the queues: from the change that follows a plan to the commit of the work."""

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
        "queues: only what is this server's is released",
        MOVING,
        "if queue.cur == server]",
        "]",
        MOVES,
    ),
    Mutation(
        "queues: of many that notice a death one plans",
        MOVING,
        "if if_due and not is_due(locked, servers, using):",
        "if False:",
        MOVES,
    ),
    Mutation(
        "queues: a server says when work was begun",
        "queues/serving/activity.py",
        "        rows.update(last_activity_at=moment, in_hand=in_hand)\n",
        "        del moment\n",
        ("tests/queues/serving/test_activity.py",),
    ),
    Mutation(
        "queues: what is locked has nobody plan again at once",
        MOVING,
        "if (queue_group.micros_of_rest or 0) > 0:",
        "if False:",
        RESTS,
    ),
    Mutation(
        "queues: nobody looks for a plan that rests",
        "queues/serving/snapshot.py",
        "rest = max(0.0, (found.micros_of_rest or 0) / 1_000_000)",
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
        "queues: a change is told by the generation",
        MOVING,
        'changed |= {"generation": F("generation") + 1, ',
        "changed |= {",
        MOVES,
    ),
    Mutation(
        "queues: a shorter deadline begins when it is set",
        "queues/models.py",
        "asked.update(requested_at=DbNow())",
        "pass",
        HANDLES,
    ),
    Mutation(
        "queues: owners learn of a shorter deadline",
        "queues/models.py",
        "is_shorter = same.filter(handover_timeout__gt=self.handover_timeout).update(generation=next_one)",
        "is_shorter = same.filter(handover_timeout__gt=self.handover_timeout).exists()",
        HANDLES,
    ),
    Mutation(
        "queues: owners learn of a longer deadline",
        "queues/models.py",
        "same.filter(handover_timeout__lt=self.handover_timeout).update(generation=next_one)",
        "pass",
        HANDLES,
    ),
    Mutation(
        "queues: a deadline that is not saved restarts nothing",
        "queues/models.py",
        'if "handover_timeout" not in (kwargs.get("update_fields") or ("handover_timeout",)):',
        "if False:",
        ("tests/queues/test_administration.py",),
    ),
    Mutation(
        "queues: a late copy sets nothing back",
        "queues/models.py",
        "if fields is not None or value[0].name not in self.planned]",
        "]",
        ("tests/queues/test_administration.py",),
    ),
    Mutation(
        "queues: who sees what others commit may plan in its transaction",
        MOVING,
        "if connection.in_atomic_block and not dialect.of(connection).reads_committed(connection):",
        "if connection.in_atomic_block:",
        MOVES,
    ),
    Mutation(
        "queues: a hand-over notes who is idle",
        MOVING,
        "        if any(change.changes_owner for change in outcome.changes):\n",
        "        if False:\n",
        MOVES,
    ),
    Mutation(
        "queues: who gets its first queue is not idle",
        MOVING,
        "if has_queues and since is not None], None)",
        "if False], None)",
        MOVES,
    ),
    Mutation(
        "queues: who gives its last queue away is idle",
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
        "queues: guard asks whether the server is alive",
        HELD,
        "if not Server.objects.using(using).alive().filter(pk=server.pk, fence=server.fence).exists():",
        "if False:",
        HANDLES,
    ),
    Mutation(
        "queues: guard that sees its server dead takes nothing away",
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
        "queues: a handle ends before others may take it over",
        HELD,
        "if monotonic() >= self.asked_until:",
        "if False:",
        HANDLES,
    ),
    Mutation(
        "queues: a handle in doubt is not trusted",
        HELD,
        "if self.is_leaving or self.is_in_doubt:",
        "if self.is_leaving:",
        MEMBERS,
    ),
    Mutation(
        "queues: work that was lost is told at its end",
        HELD,
        "            self.ensure_held()  # while it is in hand: right afterwards it may be handed over\n",
        "",
        HANDLES,
    ),
)

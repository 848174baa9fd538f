"""The guards of what is built upon leases: fences of late attempts, order of statements, lost replies."""

from tests.guards.mutation import Mutation

HANDLES = (
    "tests/queues/serving/test_held_queue.py",
    "tests/queues/serving/test_held_queue_work.py",
    "tests/queues/test_guard.py",
)
MOVES = ("tests/queues/test_reassignment.py", "tests/queues/test_planning_transactions.py")
ATTEMPTS = ("tests/taskqueue/test_attempts.py",)
CONDITIONS = ("tests/locks/test_condition.py", "tests/locks/test_notifying.py")
SUBSCRIBING = (
    "tests/locks/channels/test_subscribing.py",
    "tests/locks/channels/test_done.py",
    "tests/locks/channels/test_subscription.py",
)

SYSTEMS = (
    Mutation(
        "a check writes to a successor's row",
        "health_checks/lease.py",
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        ("tests/health_checks", "tests/proxies/health_check"),
    ),
    Mutation(
        "a job that lost its lease writes its result",
        "jobs.py",
        ".filter(pk=name, fence=term.fence)",
        ".filter(pk=name)",
        ("tests/jobs",),
    ),
    Mutation(
        "queues: a new owner has a new fence",
        "queues/reassignment.py",
        'fence=F("fence") + 1, since=DbNow()',
        "since=DbNow()",
        MOVES,
    ),
    Mutation(
        "queues: a plan begins with the row of the queue group",
        "queues/reassignment.py",
        '    QueueGroup.objects.using(using).filter(pk=queue_group).update(generation=F("generation"))\n',
        "",
        MOVES,
    ),
    Mutation(
        "queues: guard matches the fence",
        "queues/serving/held_queue.py",
        "filter(pk=self.pk, cur_server=server.pk, fence=self.fence)",
        "filter(pk=self.pk, cur_server=server.pk)",
        HANDLES,
    ),
    Mutation(
        "queues: guard checks that the server is alive",
        "queues/serving/held_queue.py",
        "if not Server.objects.using(using).alive().filter(pk=server.pk, fence=server.fence).exists():",
        "if False:",
        HANDLES,
    ),
    Mutation(
        "queues: trust counts from when the renewal was sent",
        "queues/serving/membership.py",
        "lease._trust.confirm(sent_at)",
        "lease._trust.confirm(monotonic())",
        HANDLES,
    ),
    Mutation(
        "streams: the leader's guard",
        "taskqueue/consumer.py",
        ", self._term.guard():",
        ":",
        ("tests/taskqueue/test_stream_worker.py",),
    ),
    Mutation(
        "streams: taking over raises the fence",
        "taskqueue/attempts.py",
        'state=State.READY, fence=F("fence") + 1, holder',
        "state=State.READY, holder",
        ATTEMPTS,
    ),
    Mutation(
        "streams: nothing finished ends",
        "taskqueue/attempts.py",
        "how.delay, where=UNFINISHED, also",
        "how.delay, also",
        ATTEMPTS,
    ),
    Mutation(
        "streams: a task's writes match its fence",
        "taskqueue/running_task.py",
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        ATTEMPTS,
    ),
    Mutation(
        "timers: no timer is begun early or taken from its holder",
        "taskqueue/timers/claims.py",
        "rows.filter(Q(busy_before__lte=DbNow()) | Q(holder=holder))",
        "rows",
        ("tests/taskqueue/timers/test_claims.py",),
    ),
    Mutation(
        "timers: a cancel matches the fence",
        "taskqueue/timers/scheduling.py",
        'rows.filter(pk=row["pk"], fence=row["fence"]).unfinished()',
        'rows.filter(pk=row["pk"])',
        ("tests/taskqueue/timers/test_scheduling.py",),
    ),
    Mutation(
        "dispenser: a committed call is not repeated",
        "db/receipts.py",
        "if is_callers or _write_number(connection, writer, number):",
        "if is_callers or not _write_number(connection, writer, number) or True:",
        ("tests/taskqueue/dispenser/surroundings/test_lost_replies.py",),
        "mariadb",
    ),
    Mutation(
        "dispenser: done by its fence",
        "leases/statements.py",
        "AND {fence} = {by_key(key, keys, fences)}",
        "AND 0 <> {by_key(key, keys, fences)}",
        ("tests/taskqueue/dispenser/test_dispenser.py", "tests/taskqueue/dispenser/test_bad_input.py"),
    ),
    Mutation(
        "semaphores: all or none",
        "leases/free_rows.py",
        "    if len(pks) > 1:\n",
        "    if False:\n",
        ("tests/locks/test_semaphore.py", "tests/locks/test_process_holds.py", "tests/locks/test_resize.py"),
    ),
    Mutation(
        "a writer's fence is that of any row",
        "locks/rwlock_sides.py",
        "return max(lease.fence for lease in self.leases)",
        "return min(lease.fence for lease in self.leases)",
        (
            *("tests/locks/test_rwlock.py", "tests/locks/test_rwlock_changing.py"),
            *("tests/locks/test_rwlock_order.py", "tests/locks/test_rwlock_revoked.py"),
        ),
    ),
    Mutation(
        "conditions: a notification is used up",
        "locks/notifications.py",
        "lease.is_consumed = True",
        "lease.is_consumed = False",
        CONDITIONS,
    ),
    Mutation(
        "conditions: what was notified is not waiting any more",
        "locks/notifications.py",
        "            is_waiting=False,\n",
        "",
        CONDITIONS,
    ),
    Mutation(
        "channels: the number is taken in the message's transaction",
        "locks/channels/channel.py",
        "        with transaction.atomic(using=self._using):\n            number = self._next_number(connection)\n",
        "        number = self._next_number(connection)\n        with transaction.atomic(using=self._using):\n",
        ("tests/locks/channels/test_publishing.py",),
    ),
    Mutation(
        "channels: a cursor is moved by its fence",
        "locks/channels/subscription.py",
        "filter(pk=self.pk, fence=self.fence)\n        return granted",
        "filter(pk=self.pk)\n        return granted",
        (
            *("tests/locks/channels/test_subscribing.py", "tests/locks/channels/test_done.py"),
            *("tests/locks/channels/test_subscription.py", "tests/locks/channels/test_operators.py"),
        ),
    ),
    Mutation(
        "channels: a cursor never goes back",
        "locks/channels/subscription.py",
        'forward = Greatest("cursor", Value(cursor))',
        "forward = Value(cursor)",
        SUBSCRIBING,
    ),
    Mutation(
        "channels: a transaction that is tried again is not committed twice",
        "locks/channels/position.py",
        "is_once = is_atomic and is_in_hand",
        "is_once = False",
        SUBSCRIBING,
    ),
)

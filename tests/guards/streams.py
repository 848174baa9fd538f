"""The guards of streams: which task begins, and which writes a late attempt may do."""

from tests.guards.mutation import STATEMENTS, Mutation

ATTEMPTS, STREAM_WORKER, RUNNING = (
    "taskqueue/attempts.py",
    "taskqueue/stream_worker.py",
    "taskqueue/running_task.py",
)
CONSUMER = "taskqueue/consumer.py"
POLICY, WORKER_LOOP, HANDLER_THREADS = (
    f"taskqueue/{name}.py" for name in ("policy", "worker_loop", "handler_threads")
)
SESSIONS, THREADS = ("tests/taskqueue/test_sessions.py",), ("tests/taskqueue/test_threads.py",)
UNKNOWN = ("tests/taskqueue/test_unknown_types.py",)

EACH_ATTEMPT, EACH_RUN = ("tests/taskqueue/test_attempts.py",), ("tests/taskqueue/test_stream_worker.py",)
CHOICE, JUDGEMENT = ("tests/taskqueue/test_order.py",), ("tests/taskqueue/test_policy.py",)
CONSUMERS = ("tests/taskqueue/test_lock_delay.py",)

LEADERS = (
    Mutation("streams: the leader's guard", STREAM_WORKER, ", self._term.guard():", ":", EACH_RUN),
    Mutation(
        "streams: a paused stream begins nothing", STREAM_WORKER, " and not policy.is_paused", "", EACH_RUN
    ),
    Mutation(
        "streams: a stopping consumer begins nothing", STREAM_WORKER, "if may_begin and not", "if not", EACH_RUN
    ),
    Mutation(
        "streams: a strict stream skips no lane",
        STREAM_WORKER,
        "self._skipped_lanes(math.inf if only_due else now) if by_lane else set()",
        "self._skipped_lanes(math.inf if only_due else now)",
        EACH_RUN,
    ),
    Mutation(
        "streams: a strict stream reads one task",
        STREAM_WORKER,
        "TASKS_PER_LANE * policy.lanes if by_lane else 1",
        "TASKS_PER_LANE * policy.lanes",
        EACH_RUN,
    ),
    Mutation(
        "streams: a strict stream has one lane",
        STREAM_WORKER,
        "policy.lanes > 1, monotonic()",
        "True, monotonic()",
        EACH_RUN,
    ),
    Mutation(
        "streams: one task per lane at a time",
        STREAM_WORKER,
        "policy.lanes - len(self.in_hand.running) if",
        "policy.lanes if",
        EACH_RUN,
    ),
    Mutation(
        "streams: a repeated transaction reads tasks again",
        STREAM_WORKER,
        "heads, self._due = self._due, []",
        "heads = self._due",
        EACH_RUN,
    ),
    Mutation(
        "streams: tasks are read once",
        STREAM_WORKER,
        "heads, self._due = self._due, []",
        "heads, self._due = [], []",
        EACH_RUN,
    ),
    Mutation(
        "streams: a task that kills its process is not begun",
        STREAM_WORKER,
        "after_crash(policy, head.crashes) if head.crashes else None",
        "None",
        EACH_RUN,
    ),
    Mutation(
        "streams: a deleted stream ends its term",
        STREAM_WORKER,
        "if policy is None:",
        "if policy is None and (policy := Policy('skip', 0, 0, 1, 1, 1, False)) is None:",
        EACH_RUN,
    ),
    Mutation(
        "streams: the lock-delay of the stream counts",
        CONSUMER,
        ', "lock_delay": row.lock_delay',
        "",
        CONSUMERS,
    ),
    Mutation("streams: only the first task of a lane begins", POLICY, "if lane in seen:", "if False:", CHOICE),
    Mutation(
        "streams: lanes count only in streams with several",
        POLICY,
        'head.lane if by_lane else ""',
        "head.lane",
        CHOICE,
    ),
    Mutation(
        "streams: no task overtakes a blocked one",
        POLICY,
        " or head.state == State.BLOCKED:",
        ":",
        CHOICE,
    ),
    Mutation("streams: a running task is not begun", POLICY, "head.pk in in_hand or ", "", CHOICE),
    Mutation("streams: a delayed task waits", POLICY, "and head.due_in > 0:", "and False:", CHOICE),
    Mutation(
        "streams: a crashed task begins alone", POLICY, "if in_hand or choice.begin:", "if False:", CHOICE
    ),
    Mutation(
        "streams: a task with max_crashes delays none",
        POLICY,
        "0 < head.crashes < max_crashes",
        "head.crashes",
        CHOICE,
    ),
    Mutation("streams: no task overtakes a crashed one", POLICY, "may_begin = False", "pass", CHOICE),
    Mutation(
        "streams: nothing begins beside a crashed task", POLICY, "not any(in_hand.values())", "True", CHOICE
    ),
    Mutation(
        "streams: the leader knows crashed tasks",
        STREAM_WORKER,
        "{task.pk: task.crashes for",
        "{task.pk: 0 for",
        EACH_RUN,
    ),
    Mutation(
        "streams: given back for later is not begun now",
        STREAM_WORKER,
        "READY, result.delay",
        "READY",
        EACH_RUN,
    ),
    Mutation(
        "streams: a single crash is forgotten",
        POLICY,
        "0 if policy.lanes > 1 and crashes == 1 else crashes",
        "crashes",
        EACH_RUN,
    ),
    Mutation(
        "streams: a second crash is not forgotten",
        POLICY,
        "crashes == 1 else crashes",
        "crashes else crashes",
        EACH_RUN,
    ),
    Mutation(
        "streams: not more tasks than free threads",
        POLICY,
        "may_begin and len(choice.begin) < free:",
        "may_begin:",
        CHOICE,
    ),
)

TASKS = (
    Mutation(
        "streams: taking over raises the fence",
        ATTEMPTS,
        'state=State.READY, fence=F("fence") + 1, holder',
        "state=State.READY, holder",
        EACH_ATTEMPT,
    ),
    Mutation("streams: taking over counts a crash", ATTEMPTS, ', crashes=F("crashes") + 1', "", EACH_ATTEMPT),
    Mutation("streams: not the tasks of this term", ATTEMPTS, ".exclude(term=term)", "", EACH_ATTEMPT),
    Mutation("streams: not the ready tasks", ATTEMPTS, ".filter(state=State.RUNNING)", "", EACH_ATTEMPT),
    Mutation(
        "streams: an attempt matches its fence",
        STATEMENTS,
        'match = f"{table.pk} = %s AND {fence} = %s"',
        'match = f"{table.pk} = %s AND %s > 0"',
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: each of several matches its fence",
        STATEMENTS,
        "AND {fence} = {by_key(key, keys, fences)}",
        "AND 0 < {by_key(key, keys, fences)}",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: nothing finished begins",
        ATTEMPTS,
        "DAY, holder, where=UNFINISHED, also",
        "DAY, holder, also",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: nothing finished ends",
        ATTEMPTS,
        "delay, where=UNFINISHED, also",
        "delay, also",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: nothing finished is deleted",
        ATTEMPTS,
        '"delete", attempts, where=UNFINISHED)',
        '"delete", attempts)',
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: begin raises the fence",
        STATEMENTS,
        """"hand over": f"{busy} = {later}, {fence} = {last} + 1""",
        """"hand over": f"{busy} = {later}, {fence} = {fence}""",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: end raises the fence",
        STATEMENTS,
        """"release": f"{busy} = {later}, {fence} = {fence} + 1""",
        """"release": f"{busy} = {later}, {fence} = {fence}""",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: of several tasks only begun ones run",
        ATTEMPTS,
        "if count == len(heads):",
        "if count:",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: begun means begun by this term",
        ATTEMPTS,
        ", state=State.RUNNING, term=term)",
        ", state=State.RUNNING)",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: begun means running",
        ATTEMPTS,
        ", state=State.RUNNING, term=term)",
        ", term=term)",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: a task's writes match its fence",
        RUNNING,
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        EACH_ATTEMPT,
    ),
    Mutation("streams: a task's guard", RUNNING, 'self._write(holder=F("holder"))', "pass", EACH_ATTEMPT),
    Mutation(
        "streams: a caught LeaseLost rolls back, too",
        RUNNING,
        'with guard_transaction(using, self.ensure_held, "task"):',
        "if using:",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: retries are counted",
        POLICY,
        "failures <= policy.retries",
        "failures < policy.retries",
        JUDGEMENT,
    ),
    Mutation(
        "streams: a retry waits",
        POLICY,
        "        return Decision(State.READY, policy.retry_delay)",
        "        return Decision(State.READY)",
        JUDGEMENT,
    ),
    Mutation(
        "streams: lost connections are counted", POLICY, "crashes + 1 < policy.max_crashes", "True", JUDGEMENT
    ),
    Mutation(
        "streams: crashes are counted",
        POLICY,
        "crashes < policy.max_crashes",
        "crashes <= policy.max_crashes",
        JUDGEMENT,
    ),
    Mutation(
        "streams: a task that kills its process is kept",
        POLICY,
        "decision if decision.state is State.BLOCKED else Decision(State.DEAD)",
        "decision",
        JUDGEMENT,
    ),
)

HANDLERS = (
    Mutation(
        "streams: a lost connection is no failure",
        STREAM_WORKER,
        "after_lost_connection(policy, task.crashes) if is_disconnected else None",
        "None",
        SESSIONS,
        "mariadb",
    ),
    Mutation(
        "streams: a session that is kept is alive",
        "taskqueue/sessions.py",
        "connection.health_check_enabled, connection.health_check_done = True, False",
        "pass",
        SESSIONS,
        "mariadb",
    ),
    Mutation(
        "streams: a transaction begun by SQL is seen",
        "taskqueue/sessions.py",
        "return dialect.of(connection).has_transaction(connection)",
        "return False",
        SESSIONS,
    ),
    Mutation(
        "streams: a task leaves no language behind",
        HANDLER_THREADS,
        "copy_context().run(task.run)",
        "task.run()",
        SESSIONS,
    ),
    Mutation(
        "streams: no error ends a thread",
        HANDLER_THREADS,
        "            return failure_result(error)",
        "            raise",
        THREADS,
    ),
    Mutation(
        "streams: a task without a handler here is skipped",
        POLICY,
        "head.type not in known and head.crashes < max_crashes",
        "False",
        UNKNOWN,
    ),
    Mutation(
        "streams: tasks without handlers do not hide others",
        ATTEMPTS,
        ", first_type__in=list(handlers.task_registry.known)",
        "",
        UNKNOWN,
    ),
    Mutation(
        "streams: a standby gets tasks without a handler here",
        STREAM_WORKER,
        "self._resign_for_unknown()\n",
        "pass\n",
        UNKNOWN,
    ),
    Mutation(
        "streams: an ended thread is noticed",
        WORKER_LOOP,
        "if self._in_hand.threads.has_dead_thread:",
        "if False:",
        THREADS,
    ),
)

STREAMS = (*LEADERS, *TASKS, *HANDLERS)

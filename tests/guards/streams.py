"""The guards of streams: which task begins, and what a late attempt may write."""

from tests.guards.mutation import Mutation

ATTEMPTS, LEADING, RUNNING = "taskqueue/attempts.py", "taskqueue/stream_worker.py", "taskqueue/running_task.py"
CONSUMER = "taskqueue/consumer.py"
POLICY, TURNING, WORKERS = (f"taskqueue/{name}.py" for name in ("policy", "worker_loop", "handler_threads"))
SESSIONS, THREADS = ("tests/taskqueue/test_sessions.py",), ("tests/taskqueue/test_threads.py",)
UNKNOWN = ("tests/taskqueue/test_unknown_types.py",)

EACH_ATTEMPT, EACH_TURN = ("tests/taskqueue/test_attempts.py",), ("tests/taskqueue/test_stream_worker.py",)
CHOICE, JUDGEMENT = ("tests/taskqueue/test_order.py",), ("tests/taskqueue/test_policy.py",)
CONSUMERS = ("tests/taskqueue/test_lock_delay.py",)

LEADERS = (
    Mutation("streams: the leader's guard", LEADING, ", self._term.guard():", ":", EACH_TURN),
    Mutation("streams: paused begins nothing", LEADING, " and not policy.is_paused", "", EACH_TURN),
    Mutation("streams: stopping begins nothing", LEADING, "if may_begin and not", "if not", EACH_TURN),
    Mutation(
        "streams: strict passes over no lane",
        LEADING,
        "self._lanes_passed_over(math.inf if only_due else now) if by_lane else set()",
        "self._lanes_passed_over(math.inf if only_due else now)",
        EACH_TURN,
    ),
    Mutation(
        "streams: strict looks at one head",
        LEADING,
        "TASKS_PER_LANE * policy.lanes if by_lane else 1",
        "TASKS_PER_LANE * policy.lanes",
        EACH_TURN,
    ),
    Mutation(
        "streams: strict is one lane", LEADING, "policy.lanes > 1, monotonic()", "True, monotonic()", EACH_TURN
    ),
    Mutation(
        "streams: so many at a time as lanes",
        LEADING,
        "policy.lanes - len(self._running) if",
        "policy.lanes if",
        EACH_TURN,
    ),
    Mutation("streams: the end of a process begins nothing", LEADING, "if free <= 0:", "if False:", EACH_TURN),
    Mutation(
        "streams: what is sent again is looked for again",
        LEADING,
        "heads, self._due = self._due, []",
        "heads = self._due",
        EACH_TURN,
    ),
    Mutation(
        "streams: what was seen is not looked for again",
        LEADING,
        "heads, self._due = self._due, []",
        "heads, self._due = [], []",
        EACH_TURN,
    ),
    Mutation(
        "streams: who kills its process is not begun",
        LEADING,
        "after_crash(policy, head.crashes) if head.crashes else None",
        "None",
        EACH_TURN,
    ),
    Mutation(
        "streams: a deleted stream ends its term",
        LEADING,
        "if policy is None:",
        "if policy is None and (policy := Policy('skip', 0, 0, 1, 1, 1, False)) is None:",
        EACH_TURN,
    ),
    Mutation(
        "streams: the lock-delay of the stream counts",
        CONSUMER,
        ', "lock_delay": row.lock_delay',
        "",
        CONSUMERS,
    ),
    Mutation("streams: only the first of a lane", POLICY, "if lane in seen:", "if False:", CHOICE),
    Mutation(
        "streams: a strict stream is one lane", POLICY, 'head.lane if by_lane else ""', "head.lane", CHOICE
    ),
    Mutation(
        "streams: nothing passes what is blocked",
        POLICY,
        " or head.state == State.BLOCKED:",
        ":",
        CHOICE,
    ),
    Mutation("streams: what is in hand is not begun", POLICY, "head.pk in in_hand or ", "", CHOICE),
    Mutation("streams: a delayed task waits", POLICY, "and head.due_in > 0:", "and False:", CHOICE),
    Mutation("streams: who has died begins alone", POLICY, "if in_hand or choice.begin:", "if False:", CHOICE),
    Mutation(
        "streams: who has died and is doomed is none",
        POLICY,
        "0 < head.crashes < max_crashes",
        "head.crashes",
        CHOICE,
    ),
    Mutation("streams: nothing passes who has died", POLICY, "may_begin = False", "pass", CHOICE),
    Mutation(
        "streams: nothing begins beside who has died", POLICY, "not any(in_hand.values())", "True", CHOICE
    ),
    Mutation(
        "streams: the leader knows who has died",
        LEADING,
        "{task.pk: task.crashes for",
        "{task.pk: 0 for",
        EACH_TURN,
    ),
    Mutation(
        "streams: given back for later is not begun now", LEADING, "READY, result.delay", "READY", EACH_TURN
    ),
    Mutation(
        "streams: one death is forgiven",
        POLICY,
        "0 if policy.lanes > 1 and crashes == 1 else crashes",
        "crashes",
        EACH_TURN,
    ),
    Mutation("streams: not the second", POLICY, "crashes == 1 else crashes", "crashes else crashes", EACH_TURN),
    Mutation(
        "streams: no more than are free",
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
    Mutation("streams: taking over counts the death", ATTEMPTS, ', crashes=F("crashes") + 1', "", EACH_ATTEMPT),
    Mutation("streams: not what this term runs", ATTEMPTS, ".exclude(term=term)", "", EACH_ATTEMPT),
    Mutation("streams: not what is ready", ATTEMPTS, ".filter(state=State.RUNNING)", "", EACH_ATTEMPT),
    Mutation(
        "streams: an attempt matches its fence",
        ATTEMPTS,
        "= %s AND {texts.fence} = %s AND",
        "= %s AND %s > 0 AND",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: each of several matches its fence",
        ATTEMPTS,
        "AND {texts.fence} = {fences} AND",
        "AND 0 < {fences} AND",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: nothing finished begins or ends",
        ATTEMPTS,
        '= %s AND {texts.unfinished}"\n',
        '= %s"\n',
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: nor does it beside others",
        ATTEMPTS,
        "{fences} AND {texts.unfinished}",
        "{fences}",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: begin raises the fence",
        ATTEMPTS,
        "= %s, {fence} = {fence} + 1, {name['holder']} = %s, ",
        "= %s, {name['holder']} = %s, ",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: end raises the fence",
        ATTEMPTS,
        "= %s, {fence} = {fence} + 1, {name['holder']} = '', ",
        "= %s, {name['holder']} = '', ",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: of several those run that were begun",
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
        "streams: it rolls back though it is caught",
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
        "        return Verdict(State.READY, policy.retry_delay)",
        "        return Verdict(State.READY)",
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
        "streams: who kills its process is kept",
        POLICY,
        "verdict if verdict.state is State.BLOCKED else Verdict(State.DEAD)",
        "verdict",
        JUDGEMENT,
    ),
)

HANDLERS = (
    Mutation(
        "streams: a lost connection is no failure",
        LEADING,
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
        WORKERS,
        "copy_context().run(task.run)",
        "task.run()",
        SESSIONS,
    ),
    Mutation(
        "streams: no error ends a thread",
        WORKERS,
        "            return failure_result(error)",
        "            raise",
        THREADS,
    ),
    Mutation(
        "streams: a type unknown here is left alone",
        POLICY,
        "head.type not in known and head.crashes < max_crashes",
        "False",
        UNKNOWN,
    ),
    Mutation(
        "streams: unknown types do not hide the others",
        ATTEMPTS,
        ", first_type__in=list(handlers.task_registry.known)",
        "",
        UNKNOWN,
    ),
    Mutation("streams: a standby gets what is unknown here", LEADING, "self._step_down()\n", "pass\n", UNKNOWN),
    Mutation("streams: a thread that ended is seen", TURNING, "worker.check_threads()", "pass", THREADS),
)

STREAMS = (*LEADERS, *TASKS, *HANDLERS)

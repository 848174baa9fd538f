"""The guards of timers: who handles one, when, how often, and who wins."""

from tests.guards.mutation import Mutation

SCHEDULING, CLAIMS = "taskqueue/timers/scheduling.py", "taskqueue/timers/claims.py"
DUE_TIMERS, TIMER_WORKER, RULES, RUNNING = (
    f"taskqueue/timers/{name}.py" for name in ("due_timers", "timer_worker", "rules", "running_timer")
)
OCCURRENCES, PRUNING = "taskqueue/timers/occurrences.py", "sweeps/pruning.py"

SETS = ("tests/taskqueue/timers/test_scheduling.py",)
RUNS = tuple(f"tests/taskqueue/timers/test_runner{of}.py" for of in ("", "_lost", "_recurring", "_stopping"))
HANDOVERS = ("tests/taskqueue/timers/test_handover.py",)
NODES, TIMES = ("tests/taskqueue/timers/test_rules.py",), ("tests/taskqueue/timers/test_occurrences.py",)
MODELS, OPERATORS = "taskqueue/timers/models.py", ("tests/taskqueue/timers/test_operators.py",)

TIMERS = (
    Mutation(
        "timers: a lost connection is no failure",
        CLAIMS,
        "result.is_disconnected and claimed.crashes + 1 <",
        "False and claimed.crashes + 1 <",
        ("tests/taskqueue/timers/test_sessions.py",),
        "mariadb",
    ),
    Mutation(
        "timers: an exit code of a handler is not Celery's",
        "tasks.py",
        'return str(frame.f_globals.get("__name__")).startswith("billiard.")',
        "return True",
        HANDOVERS,
    ),
    Mutation(
        "jobs: one that lost its lease has not failed",
        "jobs.py",
        "if isinstance(error, LeaseLost) and not term.is_leader:",
        "if False:",
        ("tests/jobs",),
    ),
    Mutation(
        "hints: what a signal handler raises is not swallowed",
        "hints/process.py",
        "transaction.on_commit(send_or_log, using=using)",
        "transaction.on_commit(send_or_log, using=using, robust=True)",
        ("tests/hints/test_sender.py",),
    ),
    Mutation(
        "timers: a lost reply schedules no timer twice",
        SCHEDULING,
        "if set_at in tried:",
        "if set_at in tried and not is_over:",
        ("tests/taskqueue/timers/test_lost_replies.py",),
        "mariadb",
    ),
    Mutation(
        "timers: a lost reply reschedules no timer twice",
        SCHEDULING,
        'if from_columns(row["scheduled_at"], connections[rows.db]) in tried:',
        "if False:",
        ("tests/taskqueue/timers/test_lost_replies.py",),
        "mariadb",
    ),
    Mutation(
        "timers: a timer without a row is not scheduled again",
        SCHEDULING,
        "if is_soon and not _leaves_a_row(using, name, topic):",
        "if False:",
        ("tests/taskqueue/timers/test_lost_replies.py",),
        "mariadb",
    ),
    Mutation(
        "timers: a schedule that this node cannot read is left to others",
        CLAIMS,
        'if why := occurrences.unreadable(row["schedule"]):',
        "if False:",
        ("tests/taskqueue/timers/test_claims.py",),
    ),
    Mutation(
        "timers: timers behind an unreadable one are read",
        DUE_TIMERS,
        "room + 1, late_room, self._skipped())",
        "room + 1, late_room, [])",
        ("tests/taskqueue/timers/test_processes.py",),
    ),
    Mutation(
        "timers: a cancel does not interrupt a handler",
        SCHEDULING,
        "current.filter(Q(state=State.PENDING) | Q(busy_before__lte=DbNow()))",
        "current",
        SETS,
    ),
    Mutation(
        "timers: a cancel matches the fence",
        SCHEDULING,
        'rows.filter(pk=row["pk"], fence=row["fence"]).unfinished()',
        'rows.filter(pk=row["pk"])',
        SETS,
    ),
    Mutation(
        "timers: a crashed timer can be cancelled",
        SCHEDULING,
        "Q(state=State.PENDING) | Q(busy_before__lte=DbNow())",
        "Q(state=State.PENDING)",
        SETS,
    ),
    Mutation(
        "timers: a cancel ends a running recurring timer",
        SCHEDULING,
        'current.update(schedule="")',
        "True",
        SETS,
    ),
    Mutation(
        "timers: keep keeps the timer", SCHEDULING, 'if not is_over and mode == "keep":', "if False:", SETS
    ),
    Mutation(
        "timers: an existing name is an error",
        SCHEDULING,
        'if not is_over and mode == "error":',
        "if False:",
        SETS,
    ),
    Mutation(
        "timers: a replaced timer has another fence",
        SCHEDULING,
        'rows.filter(replaceable).update(**values, fence=F("fence") + 1)',
        "rows.filter(replaceable).update(**values)",
        SETS,
    ),
    Mutation(
        "timers: no timer is begun early or taken from its holder",
        CLAIMS,
        "rows.filter(Q(busy_before__lte=DbNow()) | Q(holder=holder))",
        "rows",
        ("tests/taskqueue/timers/test_claims.py",),
    ),
    Mutation(
        "timers: a claim with a lost reply is recognized",
        CLAIMS,
        "Q(busy_before__lte=DbNow()) | Q(holder=holder)",
        "Q(busy_before__lte=DbNow())",
        ("tests/taskqueue/timers/test_claims.py",),
    ),
    Mutation(
        "timers: an end matches its fence",
        CLAIMS,
        "if current.get(end.claimed.pk, (0,))[0] == end.claimed.fence]",
        "if end.claimed.pk in current]",
        RUNS,
    ),
    Mutation(
        "timers: ends of locked rows are written later",
        CLAIMS,
        'return {pk for pk, _fence in missing.intersection(locked.values_list("pk", "fence"))}',
        "return set()",
        ("tests/taskqueue/timers/test_claims.py",),
        "mariadb",
    ),
    Mutation(
        "timers: crashes are counted",
        CLAIMS,
        'row["crashes"] += has_crashed',
        'row["crashes"] += 0',
        RUNS,
    ),
    Mutation(
        "timers: a timer given back has not crashed",
        CLAIMS,
        "has_crashed = is_new and is_running and has_holder",
        "has_crashed = is_new and is_running",
        RUNS,
    ),
    Mutation(
        "timers: cancelled while it ran",
        CLAIMS,
        "claimed = claimed._replace(next_at=None)",
        "pass",
        RUNS,
    ),
    Mutation("timers: paused begins nothing", DUE_TIMERS, "if not rule.is_paused]", "]", RUNS),
    Mutation(
        "timers: punctual timers come first",
        DUE_TIMERS,
        "[timer for timer in due if not timer.is_late] + late",
        "due",
        RUNS,
    ),
    Mutation(
        "timers: stopping begins nothing",
        TIMER_WORKER,
        "self._room() if may_begin else 0",
        "self._room()",
        RUNS,
    ),
    Mutation(
        "timers: a timer without a thread is given back",
        RUNNING,
        "if self.is_stopping or",
        "if",
        RUNS,
    ),
    Mutation(
        "timers: one whose lease ran out before its turn is given back",
        RUNNING,
        "if self.is_stopping or not self.lease.is_held:",
        "if self.is_stopping:",
        RUNS,
    ),
    Mutation(
        "timers: a claim is sent again by the rules by which it was sent",
        DUE_TIMERS,
        "{rule.name: rule for _, rule in claims_sent}",
        "self._rules",
        ("tests/taskqueue/timers/test_faults.py",),
    ),
    Mutation(
        "timers: a failure before the lease expires counts",
        RUNNING,
        "is_lost = result.error is not None and not self.lease.is_held",
        "is_lost = result.error is not None",
        RUNS,
    ),
    Mutation(
        "timers: a handler that fails after its lease ran out has not failed",
        CLAIMS,
        "if end.is_lost:",
        "if False:",
        RUNS,
    ),
    Mutation(
        "timers: none waits for a slow handler", TIMER_WORKER, "self._give_back_waiting(now)", "pass", RUNS
    ),
    Mutation(
        "timers: a timer given back does not begin",
        RUNNING,
        "if not self.take_turn():",
        "if False:",
        RUNS,
    ),
    Mutation(
        "timers: a timer given back is stored once",
        "taskqueue/in_hand.py",
        "if result is not GIVEN_BACK:",
        "if True:",
        RUNS,
    ),
    Mutation("timers: canaries", RULES, "if CANARY in labels and not rule.on_canary:", "if False:", NODES),
    Mutation("timers: required labels", RULES, "labels.get(key) != value for", "False for", NODES),
    Mutation("timers: versions", RULES, "Version(version) >= Version(least)", "True", NODES),
    Mutation("timers: the repeated hour", OCCURRENCES, "if moment_utc > start:", "if True:", TIMES),
    Mutation(
        "timers: dead-letters are kept",
        PRUNING,
        "Timer.State.DONE, Timer.State.CANCELLED",
        "Timer.State.DEAD, Timer.State.DONE, Timer.State.CANCELLED",
        ("tests/sweeps/test_pruning_timers.py",),
    ),
    Mutation(
        "timers: an operator cancels no running timer",
        MODELS,
        "exclude(_HAS_NO_HOLDER), self.unfinished().filter(_HAS_NO_HOLDER)",
        "exclude(_HAS_NO_HOLDER), self.unfinished()",
        OPERATORS,
    ),
    Mutation(
        "timers: a running recurring timer is cancelled",
        MODELS,
        'update_and_record(running.exclude(schedule=""), ',
        "update_and_record(running.none(), ",
        OPERATORS,
    ),
    Mutation(
        "timers: an operator cancels crashed timers",
        MODELS,
        'Q(state="pending") | Q(busy_before__lte=DbNow())',
        'Q(state="pending")',
        OPERATORS,
    ),
    Mutation(
        "timers: a handed-over timer is claimed by its fence",
        CLAIMS,
        "Q(fence=fence, state=State.PENDING)",
        "Q(state=State.PENDING)",
        HANDOVERS,
    ),
    Mutation(
        "timers: a handed-over timer is reserved",
        CLAIMS,
        '"busy_before": DbLater(RESEND_AFTER)}',
        '"busy_before": DbNow()}',
        HANDOVERS,
    ),
    Mutation(
        "timers: the start of the wait for a claim is kept",
        CLAIMS,
        'F("started_at") if is_unclaimed else DbNow()',
        "DbNow()",
        HANDOVERS,
    ),
    Mutation(
        "timers: a worker that has to exit gives its timer back",
        "taskqueue/running_task.py",
        "if self.ends_process(error):",
        "if False:",
        HANDOVERS,
    ),
    Mutation(
        "timers: who takes one may handle its topic",
        "taskqueue/timers/handover.py",
        "not may_handle(rule, node_labels(), node_version())",
        "False",
        HANDOVERS,
    ),
    Mutation(
        "timers: no running timer is fired",
        MODELS,
        "(self.waiting(), EventKind.FIRED",
        "(self, EventKind.FIRED",
        OPERATORS,
    ),
    Mutation(
        "timers: a retry keeps its due moment", MODELS, 'default=F("due_at")', "default=DbNow()", OPERATORS
    ),
)

"""The guards of timers: who handles one, when, how often, and who wins."""

from tests.guards.mutation import Mutation

SCHEDULING, CLAIMING = "taskqueue/timers/scheduling.py", "taskqueue/timers/claiming.py"
BATCHES, GATE, RUNNING = (f"taskqueue/timers/{name}.py" for name in ("batches", "gate", "running"))
OCCURRENCES, PRUNING = "taskqueue/timers/occurrences.py", "sweeps/pruning.py"

SETS = ("tests/taskqueue/timers/test_scheduling.py",)
RUNS = tuple(f"tests/taskqueue/timers/test_runner{of}.py" for of in ("", "_lost", "_recurring", "_stopping"))
HANDED = ("tests/taskqueue/timers/test_handed_over.py",)
NODES, TIMES = ("tests/taskqueue/timers/test_gate.py",), ("tests/taskqueue/timers/test_occurrences.py",)
MODELS, OPERATORS = "taskqueue/timers/models.py", ("tests/taskqueue/timers/test_operators.py",)

TIMERS = (
    Mutation(
        "timers: an exit code of a handler is not Celery's",
        "tasks.py",
        'return str(frame.f_globals.get("__name__")).startswith("billiard.")',
        "return True",
        HANDED,
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
        "transaction.on_commit(told, using=using)",
        "transaction.on_commit(told, using=using, robust=True)",
        ("tests/hints/test_sender.py",),
    ),
    Mutation(
        "timers: a lost answer sets none twice",
        SCHEDULING,
        "if set_at in tried:",
        "if set_at in tried and not is_over:",
        ("tests/taskqueue/timers/test_lost_replies.py",),
        "mariadb",
    ),
    Mutation(
        "timers: a lost answer moves none twice",
        SCHEDULING,
        'if from_columns(row["scheduled_at"], connections[rows.db]) in tried:',
        "if False:",
        ("tests/taskqueue/timers/test_lost_replies.py",),
        "mariadb",
    ),
    Mutation(
        "timers: one of which no row is left is not set again",
        SCHEDULING,
        "if is_soon and not _leaves_a_row(using, name, topic):",
        "if False:",
        ("tests/taskqueue/timers/test_lost_replies.py",),
        "mariadb",
    ),
    Mutation(
        "timers: a schedule that this node cannot read is left to others",
        CLAIMING,
        'if why := occurrences.unreadable(row["schedule"]):',
        "if False:",
        ("tests/taskqueue/timers/test_claiming.py",),
    ),
    Mutation(
        "timers: those behind one that cannot be read are seen",
        BATCHES,
        "room + 1, late_room, self._left_alone())",
        "room + 1, late_room, [])",
        ("tests/taskqueue/timers/test_processes.py",),
    ),
    Mutation(
        "timers: a cancel takes none from its handler",
        SCHEDULING,
        "mine.filter(Q(state=State.PENDING) | Q(busy_before__lte=DbNow()))",
        "mine",
        SETS,
    ),
    Mutation(
        "timers: a cancel is of what was seen",
        SCHEDULING,
        'rows.filter(pk=row["pk"], fence=row["fence"]).unfinished()',
        'rows.filter(pk=row["pk"])',
        SETS,
    ),
    Mutation(
        "timers: one that died half-way can be cancelled",
        SCHEDULING,
        "Q(state=State.PENDING) | Q(busy_before__lte=DbNow())",
        "Q(state=State.PENDING)",
        SETS,
    ),
    Mutation(
        "timers: a cancel ends a recurring one that runs",
        SCHEDULING,
        'mine.update(schedule="")',
        "True",
        SETS,
    ),
    Mutation("timers: kept is kept", SCHEDULING, 'if not is_over and mode == "keep":', "if False:", SETS),
    Mutation(
        "timers: in use is an error", SCHEDULING, 'if not is_over and mode == "error":', "if False:", SETS
    ),
    Mutation(
        "timers: one that is replaced has another fence",
        SCHEDULING,
        'rows.filter(still).update(**values, fence=F("fence") + 1)',
        "rows.filter(still).update(**values)",
        SETS,
    ),
    Mutation(
        "timers: none is begun early, nor taken from who has it",
        CLAIMING,
        "rows.filter(Q(busy_before__lte=DbNow()) | Q(holder=holder))",
        "rows",
        ("tests/taskqueue/timers/test_claiming.py",),
    ),
    Mutation(
        "timers: a claim whose answer was lost is found again",
        CLAIMING,
        "Q(busy_before__lte=DbNow()) | Q(holder=holder)",
        "Q(busy_before__lte=DbNow())",
        ("tests/taskqueue/timers/test_claiming.py",),
    ),
    Mutation(
        "timers: an end matches its fence",
        CLAIMING,
        "if found.get(end.claimed.pk, (0,))[0] == end.claimed.fence]",
        "if end.claimed.pk in found]",
        RUNS,
    ),
    Mutation(
        "timers: ends of locked rows are written later",
        CLAIMING,
        'return {pk for pk, _fence in missing.intersection(left.values_list("pk", "fence"))}',
        "return set()",
        ("tests/taskqueue/timers/test_claiming.py",),
        "mariadb",
    ),
    Mutation(
        "timers: deaths are counted",
        CLAIMING,
        'row["deaths"] += has_died',
        'row["deaths"] += 0',
        RUNS,
    ),
    Mutation(
        "timers: what was given back is no death",
        CLAIMING,
        "has_died = is_new and is_running and has_holder",
        "has_died = is_new and is_running",
        RUNS,
    ),
    Mutation(
        "timers: cancelled while it ran",
        CLAIMING,
        "claimed = claimed._replace(next_at=None)",
        "pass",
        RUNS,
    ),
    Mutation("timers: paused begins nothing", BATCHES, "if not rule.is_paused]", "]", RUNS),
    Mutation(
        "timers: those in time come first",
        BATCHES,
        "[one for one in due if not one.is_late] + late",
        "due",
        RUNS,
    ),
    Mutation(
        "timers: stopping begins nothing",
        BATCHES,
        "self._room() if may_begin else 0",
        "self._room()",
        RUNS,
    ),
    Mutation(
        "timers: what waits for a thread is given back",
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
        BATCHES,
        "{rule.name: rule for _, rule in asked_for}",
        "self._rules",
        ("tests/taskqueue/timers/test_misfortunes.py",),
    ),
    Mutation(
        "timers: what fails before the lease ran out has failed",
        RUNNING,
        "is_lost = result.error is not None and not self.lease.is_held",
        "is_lost = result.error is not None",
        RUNS,
    ),
    Mutation(
        "timers: a handler that fails after its lease ran out has not failed",
        CLAIMING,
        "if end.is_lost:",
        "if False:",
        RUNS,
    ),
    Mutation("timers: none waits for a slow handler", BATCHES, "self._give_back_waiting(now)", "pass", RUNS),
    Mutation(
        "timers: what is given back unbegun does not begin",
        RUNNING,
        "if not self.take_turn():",
        "if False:",
        RUNS,
    ),
    Mutation(
        "timers: what is given back is written once",
        BATCHES,
        "if result is not GIVEN_BACK:",
        "if True:",
        RUNS,
    ),
    Mutation("timers: canaries", GATE, "if CANARY in labels and not rule.on_canary:", "if False:", NODES),
    Mutation("timers: required labels", GATE, "labels.get(key) != value for", "False for", NODES),
    Mutation("timers: versions", GATE, "order(version) >= order(rule.least_version)", "True", NODES),
    Mutation("timers: the hour that comes twice", OCCURRENCES, "if found > start:", "if True:", TIMES),
    Mutation(
        "timers: dead-letters are kept",
        PRUNING,
        "Timer.State.DONE, Timer.State.CANCELLED",
        "Timer.State.DEAD, Timer.State.DONE, Timer.State.CANCELLED",
        ("tests/sweeps/test_pruning_timers.py",),
    ),
    Mutation(
        "timers: an operator cancels none that runs",
        MODELS,
        "exclude(_NOBODYS), self.unfinished().filter(_NOBODYS)",
        "exclude(_NOBODYS), self.unfinished()",
        OPERATORS,
    ),
    Mutation(
        "timers: a recurring one that runs is cancelled",
        MODELS,
        'changed(running.exclude(schedule=""), ',
        "changed(running.none(), ",
        OPERATORS,
    ),
    Mutation(
        "timers: an operator cancels what a dead process left",
        MODELS,
        'Q(state="pending") | Q(busy_before__lte=DbNow())',
        'Q(state="pending")',
        OPERATORS,
    ),
    Mutation(
        "timers: what was handed over is taken by its fence",
        CLAIMING,
        "Q(fence=fence, state=State.PENDING)",
        "Q(state=State.PENDING)",
        HANDED,
    ),
    Mutation(
        "timers: what was handed over is set aside",
        CLAIMING,
        '"busy_before": DbLater(HANDED_FOR)}',
        '"busy_before": DbNow()}',
        HANDED,
    ),
    Mutation(
        "timers: since when nobody takes one is kept",
        CLAIMING,
        'F("started_at") if is_untaken else DbNow()',
        "DbNow()",
        HANDED,
    ),
    Mutation(
        "timers: a worker that is told to end gives its timer back",
        "taskqueue/running.py",
        "if self.ends_process(error):",
        "if False:",
        HANDED,
    ),
    Mutation(
        "timers: who takes one may handle its topic",
        "taskqueue/timers/handed.py",
        "not may_handle(rule, node_labels(), node_version())",
        "False",
        HANDED,
    ),
    Mutation(
        "timers: none is fired that runs", MODELS, "(self.waiting(), What.FIRED", "(self, What.FIRED", OPERATORS
    ),
    Mutation(
        "timers: a retry keeps its due moment", MODELS, 'default=F("due_at")', "default=DbNow()", OPERATORS
    ),
)

"""The guards of submission: what is added, by whom, and what operators and the beat do to it."""

from tests.guards.mutation import Mutation

MODELS = "taskqueue/models.py"
ABSTRACT = "taskqueue/abstract.py"
BEAT = "celery_beat.py"

EACH_ATTEMPT = ("tests/taskqueue/test_attempts.py",)
SUBMITS, OPERATORS = ("tests/taskqueue/test_submit.py",), ("tests/taskqueue/test_operators.py",)
COLUMNS, ENTRIES = ("tests/taskqueue/test_models.py",), ("tests/taskqueue/test_beat_entries.py",)
BROKERS = ("tests/taskqueue/test_celery_beat.py",)

SUBMISSION = (
    Mutation(
        "streams: a key is unique in its stream",
        "migrations/0001_initial.py",
        'models.UniqueConstraint(fields=("stream", "key"), name="resourcepool_task_key")',
        'models.UniqueConstraint(fields=("stream", "key", "id"), name="resourcepool_task_key")',
        (*EACH_ATTEMPT, *SUBMITS),
    ),
    Mutation(
        "streams: a concurrent key is kept",
        "taskqueue/bulk_insert.py",
        "ops.insert_statement(on_conflict=OnConflict.IGNORE)",
        "ops.insert_statement()",
        SUBMITS,
    ),
    Mutation(
        "text: altered text is refused",
        "taskqueue/bulk_insert.py",
        "        db_dialect.raise_on_altered_text(connection)\n",
        "",
        ("tests/test_text.py",),
        "mariadb",
    ),
    Mutation(
        "text: columns hold all characters",
        "text.py",
        'parameters["collation"] = self.mysql_collation',
        "pass",
        ("tests/test_text.py",),
        "mariadb",
    ),
    Mutation(
        "text: text of a task ends no consumer",
        "taskqueue/stream_worker.py",
        "if not self.in_hand.ends or not dialect.refuses_text(self._connection, error):",
        "if True:",
        ("tests/test_text.py",),
        "postgresql",
    ),
    Mutation(
        "text: text of a timer ends no node",
        "taskqueue/timers/claims.py",
        "if not ends or not dialect.refuses_text(connections[using], error):",
        "if True:",
        ("tests/test_text.py",),
        "postgresql",
    ),
    Mutation("streams: a second submission is reported", ABSTRACT, "return False", "return True", SUBMITS),
    Mutation(
        "streams: other errors are raised",
        ABSTRACT,
        "                raise\n            return False",
        "                pass\n            return False",
        SUBMITS,
    ),
    Mutation(
        "streams: an own task is recognized after a lost reply",
        ABSTRACT,
        "return bool(existing == tried)",
        "return False",
        SUBMITS,
        "mariadb",
    ),
    Mutation(
        "streams: another task is not taken for the own one",
        ABSTRACT,
        "return bool(existing == tried)",
        "return tried is not None",
        SUBMITS,
    ),
    Mutation(
        "streams: a key newer than the snapshot is noticed",
        ABSTRACT,
        "if not dialect.violates(connections[using], error, constraint.name):",
        "if True:",
        SUBMITS,
        "postgresql",
    ),
    Mutation("streams: retry leaves the others alone", ABSTRACT, "*(self.failed(), ", "*(self, ", OPERATORS),
    Mutation(
        "streams: discard leaves the others alone",
        ABSTRACT,
        "*(self.discardable(), ",
        "*(self, ",
        OPERATORS,
    ),
    Mutation("streams: save leaves the address alone", MODELS, ' | {"address"}', "", COLUMNS),
    Mutation(
        "streams: dead-letters are not pruned",
        "sweeps/pruning.py",
        "Task.State.SKIPPED, Task.State.DISCARDED)",
        "Task.State.SKIPPED, Task.State.DISCARDED, Task.State.DEAD)",
        ("tests/sweeps/test_pruning_tasks.py",),
    ),
    Mutation(
        "beat: a broker that is away is no failure", BEAT, "except BROKER_ERRORS as", "except () as", BROKERS
    ),
    Mutation(
        "beat: an outdated copy starts nothing again",
        BEAT,
        'f"{entry.model.pk} {entry.total_run_count} {last_run_at.isoformat()}"',
        'f"{entry.model.pk} {entry.model.last_run_at.isoformat()}"',
        ("tests/taskqueue/test_celery_beat_entries.py",),
    ),
    Mutation(
        "beat: a crontab of a single hour that was missed is run",
        BEAT,
        "return self.Model.objects.enabled()",
        "return super().enabled_models_qs()",
        ("tests/taskqueue/test_celery_beat_entries.py",),
    ),
    Mutation(
        "beat: a broker that answers nothing is given up",
        "hints/broker.py",
        "{**dict.fromkeys(LIMITS, CONNECT_TIMEOUT), **app",
        "{**app",
        ("tests/taskqueue/test_celery_beat_entries.py",),
    ),
    Mutation(
        "beat: arguments are in Celery's own JSON",
        BEAT,
        "return json.loads(dumps(value))",
        "return value",
        ("tests/taskqueue/test_celery_beat_entries.py",),
    ),
    Mutation(
        "beat: SIGTERM in a transaction does not wait",
        BEAT,
        "            if not self._is_ticking:\n                self._thread.join",
        "            if True:\n                self._thread.join",
        BROKERS,
    ),
    Mutation(
        "beat: SIGTERM is not lost to a driver's error",
        BEAT,
        "        if self._is_closed:\n            raise SystemExit\n",
        "",
        BROKERS,
    ),
    Mutation("beat: one run of an entry", BEAT, ", total_run_count=entry.total_run_count", "", ENTRIES),
    Mutation(
        "beat: the leader's guard",
        BEAT,
        "transaction.atomic(using=term.using), term.guard():",
        "transaction.atomic(using=term.using):",
        ENTRIES,
    ),
    Mutation("beat: no disabled entries", BEAT, "pk=model.pk, enabled=True,", "pk=model.pk,", ENTRIES),
    Mutation(
        "beat: noted and submitted, or neither",
        BEAT,
        "with transaction.atomic(using=term.using), term.guard():",
        "if term.ensure_held() is None:",
        ENTRIES,
    ),
    Mutation(
        "a statement is larger than a server with the smallest max_allowed_packet takes",
        "database/batches.py",
        "LENGTH = 250_000",
        "LENGTH = 25_000_000",
        ("tests/locks/channels/test_publishing_many.py",),
        "mariadb",
    ),
)

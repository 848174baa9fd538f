"""The guards of submitting: what is added, by whom, and what operators and the beat do to it."""

from tests.guards.mutation import Mutation

MODELS = "taskqueue/models.py"
ABSTRACT = "taskqueue/abstract.py"
BEAT = "celery_beat.py"

EACH_ATTEMPT = ("tests/taskqueue/test_attempts.py",)
SUBMITS, OPERATORS = ("tests/taskqueue/test_submit.py",), ("tests/taskqueue/test_operators.py",)
COLUMNS, ENTRIES = ("tests/taskqueue/test_models.py",), ("tests/taskqueue/test_beat_entries.py",)
BROKERS = ("tests/taskqueue/test_celery_beat.py",)

SUBMITTED = (
    Mutation(
        "streams: a key is unique in its stream",
        "migrations/0001_initial.py",
        'models.UniqueConstraint(fields=("stream", "key"), name="resourcepool_task_key")',
        'models.UniqueConstraint(fields=("stream", "key", "id"), name="resourcepool_task_key")',
        (*EACH_ATTEMPT, *SUBMITS),
    ),
    Mutation(
        "streams: a key that came in between is left",
        "taskqueue/table.py",
        "ops.insert_statement(on_conflict=OnConflict.IGNORE)",
        "ops.insert_statement()",
        SUBMITS,
    ),
    Mutation("streams: submitted twice is told", ABSTRACT, "return False", "return True", SUBMITS),
    Mutation(
        "streams: another error is none",
        ABSTRACT,
        "                raise\n            return False",
        "                pass\n            return False",
        SUBMITS,
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
    Mutation("beat: a broker that is away is no failure", BEAT, "except AWAY as", "except () as", BROKERS),
    Mutation("beat: one run of an entry", BEAT, ", total_run_count=entry.total_run_count", "", ENTRIES),
    Mutation(
        "beat: the leader's guard",
        BEAT,
        "transaction.atomic(using=term.using), term.guard():",
        "transaction.atomic(using=term.using):",
        ENTRIES,
    ),
    Mutation("beat: not what is switched off", BEAT, "pk=model.pk, enabled=True,", "pk=model.pk,", ENTRIES),
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

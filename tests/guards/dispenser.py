"""The guards of the dispenser: who gets a task, who finishes it, and which tasks a rebuild changes."""

from tests.guards.mutation import Mutation

STATEMENTS, BUCKETS = "taskqueue/dispenser/statements.py", "taskqueue/dispenser/bucket_lifecycle.py"
REBUILD = "taskqueue/dispenser/rebuild.py"
VALIDATION = "taskqueue/dispenser/validation.py"

HANDS_OUT, RACES = (
    ("tests/taskqueue/dispenser/test_dispenser.py", "tests/taskqueue/dispenser/test_refused.py"),
    ("tests/taskqueue/dispenser/test_interleavings.py",),
)
FACTORIES = ("tests/taskqueue/dispenser/test_factories.py",)
FROZEN = ("tests/taskqueue/dispenser/surroundings/test_frozen.py",)
REBUILDS, POOLS = ("tests/taskqueue/dispenser/test_rebuild.py",), ("tests/taskqueue/dispenser/test_pool.py",)

LOST = ("tests/taskqueue/dispenser/surroundings/test_lost_replies.py",)

DISPENSERS = (
    Mutation(
        "dispenser: a committed call is not repeated",
        "database/receipts.py",
        "if is_callers or _write_number(connection, writer, number):",
        "if is_callers or not _write_number(connection, writer, number) or True:",
        LOST,
        "mariadb",
    ),
    Mutation(
        "dispenser: a worker with tasks does not wait for a suspended rebuild",
        BUCKETS,
        "wait = (SHORT_REBUILD if had else WHOLE_REBUILD) if after_rebuild else WAIT",
        "wait = WHOLE_REBUILD if after_rebuild else WAIT",
        REBUILDS,
        "mariadb",
    ),
    Mutation(
        "dispenser: adding does not wait for a rebuild",
        "database/rows.py",
        "    if model._base_manager.using(using).filter(pk=pk).exists():\n",
        "    if False:\n",
        REBUILDS,
        "mariadb",
    ),
    Mutation(
        "dispenser: done by another worker is stale",
        "taskqueue/dispenser/dispenser.py",
        'existing.get(key) == ["done", fence + 1, outcome]',
        'existing.get(key, [])[:2] == ["done", fence + 1]',
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: tasks are checked under their fences",
        "taskqueue/dispenser/dispenser.py",
        "is_same = all(",
        "is_same = True or all(",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: two workers get no common bucket",
        "taskqueue/dispenser/bucket.py",
        "if retrying(connections[self._using], rows.first) not in (None, worker):",
        "if False:",
        ("tests/taskqueue/dispenser/test_buckets.py",),
    ),
    Mutation(
        "dispenser: done by its fence",
        "leases/statements.py",
        "AND {fence} = {by_key(key, keys, fences)}",
        "AND 0 <> {by_key(key, keys, fences)}",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: done by its worker",
        STATEMENTS,
        'WHERE dispenser_id = %s AND {name} = %s)"',
        'WHERE dispenser_id = %s AND {name} <> %s LIMIT 1)"',
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: an expired bucket is not touched",
        STATEMENTS,
        'WHERE id = %s AND busy_before > {now}"',
        "WHERE id = %s AND busy_before > '1999-01-01'\"",
        ("tests/taskqueue/dispenser/test_buckets.py", *HANDS_OUT, *RACES),
    ),
    Mutation(
        "dispenser: lowest score first",
        STATEMENTS,
        "{{and_not_before}} ORDER BY score, id",
        "{{and_not_before}} ORDER BY id",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: the tasks of a worker count",
        BUCKETS,
        "rows = statements.tasks_in_bucket(connection, bucket)",
        "rows: list[Row] = []",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: the tail goes back",
        BUCKETS,
        "            statements.give_back(connection, bucket, rows[limit:])\n",
        "",
        HANDS_OUT,
    ),
    Mutation("dispenser: paused", BUCKETS, "or seen.is_paused:", "or False:", HANDS_OUT),
    Mutation(
        "dispenser: not inside a transaction",
        BUCKETS,
        "    refuse_assignment_in_transaction(connections[using])\n",
        "",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: expired buckets are reclaimed",
        BUCKETS,
        "            reclaim_expired(using, expired, seen.most_expirations)\n",
        "            pass\n",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: a reclaimed task may be the first",
        BUCKETS,
        "return seen._replace(head=None) if seen.expired else seen",
        "return seen",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: a rebuild may put tasks before the first one",
        BUCKETS,
        "head = None if after_rebuild else seen.head",
        "head = seen.head",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: the first that was seen is handed out, too",
        "dialect/base.py",
        '"({first}, {second}) >= ({first_value}, {second_value})"',
        '"({first}, {second}) > ({first_value}, {second_value})"',
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: a suspended assignment is ended",
        BUCKETS,
        "return short_transaction(connections[using], wait=wait)",
        "return short_transaction(connections[using], idle=600, wait=wait)",
        FROZEN,
        "mariadb",
    ),
    Mutation(
        "dispenser: no wait for tasks that are being finished",
        BUCKETS,
        "tasks.select_for_update(skip_locked=True) if skips else tasks",
        "tasks",
        FROZEN,
        "mariadb",
    ),
    Mutation(
        "dispenser: a bucket stays while a task in it is locked",
        BUCKETS,
        'left = set(tasks.values_list("bucket_id", flat=True))',
        "left = set[int]()",
        FROZEN,
        "mariadb",
    ),
    Mutation(
        "dispenser: a task with a refused key is not removed",
        "taskqueue/dispenser/pool.py",
        "                made, refused = validation.apply_factory(rows, self.factory)\n",
        "                statements.remove(connection, rows)\n"
        "                made, refused = validation.apply_factory(rows, self.factory)\n",
        FACTORIES,
    ),
    Mutation(
        "dispenser: a key that cannot be named again is failed",
        VALIDATION,
        "and key(made) != text:",
        "and False:",
        FACTORIES,
    ),
    Mutation(
        "dispenser: the factory is asked before anything is done",
        "taskqueue/dispenser/dispenser.py",
        "        named = {key: self._named(key) for key in fences}",
        "        named = {key: key for key in fences}",
        FACTORIES,
    ),
    Mutation(
        "dispenser: a prefix by which all workers have one bucket",
        "taskqueue/dispenser/bucket.py",
        'if self.make_task_name("one") == self.make_task_name("another"):',
        "if False:",
        ("tests/taskqueue/dispenser/test_buckets.py",),
    ),
    Mutation(
        "dispenser: no bucket is made inside a transaction",
        "taskqueue/dispenser/bucket.py",
        "        bucket_lifecycle.refuse_assignment_in_transaction(connections[self._using])\n",
        "",
        ("tests/taskqueue/dispenser/surroundings/test_transactions.py",),
    ),
    Mutation(
        "dispenser: buckets are freed on the writer",
        "taskqueue/dispenser/models.py",
        "        self._for_write = True  # not a replica\n",
        "",
        ("tests/taskqueue/dispenser/surroundings/test_second_database.py",),
    ),
    Mutation(
        "dispenser: poison leaves the pool",
        BUCKETS,
        "expirations__gte=most_expirations - 1)",
        "expirations__gte=most_expirations + 9)",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: an older mapping changes nothing",
        REBUILD,
        "Q(as_of=None) | Q(as_of__lte=moment)",
        "Q()",
        REBUILDS,
    ),
    Mutation(
        "dispenser: finished since the mapping was computed",
        REBUILD,
        "bool(as_of and from_columns(finished_at, connection) < as_of)",
        "bool(as_of)",
        REBUILDS,
    ),
    Mutation(
        "dispenser: without USE_TZ moments are of TIME_ZONE",
        REBUILD,
        "from_columns(finished_at, connection) < as_of",
        "finished_at.replace(tzinfo=as_of.tzinfo) < as_of",
        ("tests/taskqueue/dispenser/surroundings/test_time.py",),
    ),
    Mutation(
        "dispenser: added after its end is a new row",
        REBUILD,
        "            again[task.pk] = task.fence\n",
        "",
        POOLS,
    ),
    Mutation("dispenser: infinite scores", VALIDATION, "and math.isfinite(value)", "and value == value", POOLS),
    Mutation(
        "dispenser: a key alone is refused",
        VALIDATION,
        "if not is_pair or",
        "if not is_pair:\n            continue\n        if",
        HANDS_OUT,
    ),
)

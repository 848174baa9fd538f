"""The guards of the dispenser: who gets a task, who finishes it, and what a rebuild may touch."""

from tests.guards.mutation import Mutation

STATEMENTS, BUCKETS = "taskqueue/dispenser/statements.py", "taskqueue/dispenser/buckets.py"
HANDING, PUTTING = "taskqueue/dispenser/handing.py", "taskqueue/dispenser/putting.py"
REBUILD = "taskqueue/dispenser/rebuild.py"
GIVEN = "taskqueue/dispenser/given.py"

HANDS_OUT, RACES = (
    ("tests/taskqueue/dispenser/test_dispenser.py",),
    ("tests/taskqueue/dispenser/test_interleavings.py",),
)
REBUILDS, POOLS = ("tests/taskqueue/dispenser/test_rebuild.py",), ("tests/taskqueue/dispenser/test_pool.py",)

DISPENSERS = (
    Mutation(
        "dispenser: done by its fence",
        STATEMENTS,
        "IN ({{keys}}) AND fence = CASE {key} {{fences}} END AND",
        "IN ({{keys}}) AND 0 <> CASE {key} {{fences}} END AND",
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
        "dispenser: what a worker has counts",
        HANDING,
        "rows = statements.held(connection, bucket)",
        "rows: list[Row] = []",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: the tail goes back",
        HANDING,
        "            statements.give_back(connection, bucket, rows[limit:])\n",
        "",
        HANDS_OUT,
    ),
    Mutation("dispenser: paused", HANDING, "or seen.is_paused:", "or False:", HANDS_OUT),
    Mutation(
        "dispenser: not inside a transaction",
        HANDING,
        "    refuse_open_transaction(connections[using])\n",
        "",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: expired buckets are taken back",
        BUCKETS,
        "            take_back(using, pk, seen.most_expirations)\n",
        "            pass\n",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: what was taken back may be the first",
        BUCKETS,
        "return seen._replace(head=None) if seen.expired else seen",
        "return seen",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: what a rebuild has put before the first that was seen",
        HANDING,
        "head = None if after_rebuild else seen.head",
        "head = seen.head",
        HANDS_OUT,
    ),
    Mutation(
        "dispenser: the first that was seen is handed out, too",
        "dialect/base.py",
        '"({first}, {second}) >= ({one}, {other})"',
        '"({first}, {second}) > ({one}, {other})"',
        HANDS_OUT,
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
        "Q(as_of=None) | Q(as_of__lte=as_of)",
        "Q()",
        REBUILDS,
    ),
    Mutation(
        "dispenser: finished since the mapping was computed",
        REBUILD,
        "bool(as_of and finished_at < as_of)",
        "bool(as_of)",
        REBUILDS,
    ),
    Mutation(
        "dispenser: added after its end is a new row",
        PUTTING,
        "            again[one.pk] = one.fence\n",
        "",
        POOLS,
    ),
    Mutation("dispenser: infinite scores", GIVEN, "-math.inf < score < math.inf", "score == score", POOLS),
    Mutation(
        "dispenser: a key alone is refused",
        GIVEN,
        "if not is_pair or",
        "if not is_pair:\n            continue\n        if",
        HANDS_OUT,
    ),
)

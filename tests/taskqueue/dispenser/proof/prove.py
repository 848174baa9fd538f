"""The guards that are removed one at a time, to see that the checker objects."""

from tests.proof.cases import own
from tests.taskqueue.dispenser.proof.judge import LOST, NOBODYS, ORDER, OVER, SHARED, TWICE, UNEXPECTED

# More faults than in a usual run, which lasts longer.
WORDS = ("--tasks", "4000", "--every", "0.2", "--patience", "8")
FOLDER = "taskqueue/dispenser/"

CASES = (
    own(
        "a task is finished under its own fence",
        FOLDER + "statements.py",
        'sql.format(current=still_current(texts(connection).key, "fence", marks, _numbers(fences.values())))',
        'sql.replace("AND bucket_id =", "AND 0 <>").format('
        'current=still_current(texts(connection).key, "fence", marks, ["fence"] * len(fences)))',
        TWICE,
        NOBODYS,
    ),
    own(
        "the tasks of a worker count towards its limit",
        FOLDER + "bucket_lifecycle.py",
        "rows = statements.tasks_in_bucket(connection, bucket)",
        "rows: list[Row] = []",
        OVER,
    ),
    own(
        "expired buckets are reclaimed",
        FOLDER + "bucket_lifecycle.py",
        "                reclaim_expired(self.using, expired, seen.most_expirations)\n",
        "                pass\n",
        LOST,
        UNEXPECTED,
    ),
    own(
        "an assignment raises the fence",
        FOLDER + "statements.py",
        "SET state = 'assigned', bucket_id = %s, fence = fence + 1, ",
        "SET state = 'assigned', bucket_id = %s, ",
        TWICE,
        NOBODYS,
        SHARED,
    ),
    own(
        "lowest score first",
        FOLDER + "statements.py",
        "{{and_not_before}} ORDER BY score, id",
        "{{and_not_before}} ORDER BY id",
        ORDER,
    ),
    own(
        "tasks are locked before they are handed out",
        FOLDER + "statements.py",
        "{' FOR UPDATE SKIP LOCKED' if skips else ''}",
        "",
        SHARED,
        TWICE,
        NOBODYS,
    ),
    own(
        "a task that finished after its mapping was begun does not come back",
        FOLDER + "rebuild.py",
        "bool(as_of and from_columns(finished_at, connection) < as_of)",
        "True",
        LOST,
        TWICE,
    ),
)

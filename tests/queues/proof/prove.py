"""The guards that are removed one at a time, to see that the checker objects."""

from tests.proof.cases import own

WORDS = ("--minutes", "0.4")
OVERLAP, FENCE = "two servers at once", "fence not higher than before"
CUT_OFF, UNWORKED, NEEDLESS = (
    "work in hand lost its queue",
    "queue unworked for too long",
    "more moves than needed",
)

MEMBERSHIP, MOVING, PLANNING = (
    "queues/serving/membership.py",
    "queues/reassignment.py",
    "queues/planning/changes.py",
)
CASES = (
    own(
        "a hand-over waits for the work in hand",
        MEMBERSHIP,
        "(queue.is_asked_for or queue.is_in_doubt) and not queue.is_in_hand",
        "(queue.is_asked_for or queue.is_in_doubt)",
        *(CUT_OFF, OVERLAP),
    ),
    own(
        "nothing is taken over before its owner would stop",
        PLANNING,
        " and queue.requested_ago >= limit",
        "",
        *(CUT_OFF, OVERLAP),
    ),
    own(
        "a server is presumed dead after its ttl",
        "queues/queries.py",
        "row.micros_left > 0",
        "row.micros_left > 2_500_000",
        *(CUT_OFF, OVERLAP, NEEDLESS),
    ),
    # The lease of the server and the last check are both affected, as each of them alone would be enough.
    own("the end of trust", "leases/terms.py", "return min(ttl / 10, 2.0)", "return -1_000 * ttl", OVERLAP),
    own("a change of owner raises the fence", MOVING, 'fence=F("fence") + 1, ', "", FENCE, OVERLAP),
    own(
        "dead servers are looked for",
        "queues/serving/snapshot.py",
        "dead_in = math.inf if row.next_dead is None else row.next_dead / 1_000_000",
        "dead_in = math.inf",
        UNWORKED,
    ),
)

"""What a guard that can be taken out is."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """One guard, where it stands, what is left without it, and who should miss it.

    ``database``: the server on which they miss it, see ``tests.servers``; "": SQLite.
    """

    name: str
    file: str
    guard: str
    without: str
    tests: tuple[str, ...] = ("tests/leases",)
    database: str = ""


CONTRACT = ("tests/leases/test_contract.py", "tests/leases/test_contract_in_time.py")
CHECKS = ("tests/health_checks", "tests/proxies/health_check")
VERBS, LEASE, TERMS = "leases/verbs.py", "leases/lease.py", "leases/terms.py"
STATEMENTS = "leases/statements.py"
LINE = "waiting/poll.py"
LOOK = "waiting/look.py"
SCAN = "waiting/scan.py"
HANDLES = (
    "tests/queues/serving/test_held_queue.py",
    "tests/queues/serving/test_held_queue_work.py",
    "tests/queues/test_guard.py",
)
MEMBERS = (
    "tests/queues/serving/test_membership.py",
    "tests/queues/serving/test_membership_presumed_dead.py",
    "tests/queues/test_handover.py",
)
SERVERS = tuple(
    f"tests/queues/serving/test_server{end}.py" for end in ("", "_loop", "_stopping", "_presumed_dead")
)

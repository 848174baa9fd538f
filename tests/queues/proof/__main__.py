"""Servers share queues while others start, stop and fail; exit code 1 when a promise was broken.

See docs/internals/reliability.md.

python -m tests.queues.proof                                   one of everything on MariaDB, half a minute
python -m tests.queues.proof --minutes 5 --database postgresql
python -m tests.queues.proof --without "the end of trust"      with one guard removed: the checker must object
python -m tests.queues.proof --prove                           every guard, one after the other
"""

from tests.proof.command import Proof
from tests.queues.proof.prove import CASES, WORDS
from tests.queues.proof.terms import QueuePlan
from tests.servers import SERVERS

PROOF = Proof("tests.queues.proof", __doc__, QueuePlan, (*SERVERS, "sqlite"), CASES, WORDS)

if __name__ == "__main__":
    PROOF.run_as_script()

"""Consumers of a stream while all of it fails; exit code 1 when a promise was broken (docs/reference/streams.md).

python -m tests.taskqueue.proof                                 2,000 tasks on MariaDB
python -m tests.taskqueue.proof --tasks 10000 --lanes 4 --database postgresql
"""

from tests.proof.command import Proof
from tests.taskqueue.proof.terms import StreamPlan

PROOF = Proof("tests.taskqueue.proof", __doc__, StreamPlan)

if __name__ == "__main__":
    PROOF.run_as_script()

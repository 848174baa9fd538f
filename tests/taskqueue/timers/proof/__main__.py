"""Nodes that handle timers, killed or stopped every so often, their database restarted; exit code 1: a broken promise.

python -m tests.taskqueue.timers.proof                             20,000 timers over 60 s on MariaDB
python -m tests.taskqueue.timers.proof --timers 600 --over 6 --every 1 --database postgresql
"""

from tests.proof.command import Proof
from tests.taskqueue.timers.proof.terms import TimerPlan

PROOF = Proof("tests.taskqueue.timers.proof", __doc__, TimerPlan)

if __name__ == "__main__":
    PROOF.run_as_script()

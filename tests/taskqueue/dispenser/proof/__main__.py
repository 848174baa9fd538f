"""Workers of a dispenser while all of it fails, its pool rebuilt every second; exit code 1: a promise was broken.

python -m tests.taskqueue.dispenser.proof                                   100,000 tasks on MariaDB
python -m tests.taskqueue.dispenser.proof --tasks 20000 --database sqlite
python -m tests.taskqueue.dispenser.proof --without "lowest score first"    a guard removed: the checker must object
python -m tests.taskqueue.dispenser.proof --prove                           every guard, one after the other
"""

from tests.proof.command import Proof
from tests.servers import SERVERS
from tests.taskqueue.dispenser.proof.prove import CASES, WORDS
from tests.taskqueue.dispenser.proof.terms import DispenserPlan

PROOF = Proof("tests.taskqueue.dispenser.proof", __doc__, DispenserPlan, ("sqlite", *SERVERS), CASES, WORDS)

if __name__ == "__main__":
    PROOF.run_as_script()

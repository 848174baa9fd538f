"""Workers that use locks of every kind while all of it fails; exit code 1: a promise was broken.

python -m tests.locks.proof                                      for a minute on MariaDB
python -m tests.locks.proof --seconds 300 --database postgresql
python -m tests.locks.proof --hints                              a Redis tells who waits; it is killed, and hangs
python -m tests.locks.proof --without "semaphores: all or none"  a guard removed: the checker must object
python -m tests.locks.proof --prove                              every guard, one after the other (--prove WORD: some)
"""

from tests.locks.proof.prove import CASES, WORDS
from tests.locks.proof.terms import LockPlan
from tests.proof.command import Proof
from tests.servers import SERVERS

PROOF = Proof("tests.locks.proof", __doc__, LockPlan, ("sqlite", *SERVERS), CASES, WORDS)

if __name__ == "__main__":
    PROOF.run_as_script()

"""Workers of a dispenser under misfortunes, its pool rebuilt every second; exit code 1: a promise was broken.

python -m tests.taskqueue.dispenser.proof                                   100,000 tasks on MariaDB
python -m tests.taskqueue.dispenser.proof --tasks 20000 --database sqlite
python -m tests.taskqueue.dispenser.proof --without "lowest score first"    a guard taken out: the judge must object
python -m tests.taskqueue.dispenser.proof --prove                           every guard, one after the other
"""

import argparse
import sys

from tests.proof import Proof
from tests.servers import SERVERS
from tests.taskqueue.dispenser.proof.prove import CASES, WORDS
from tests.taskqueue.dispenser.proof.run import PATIENCE, Plan, run


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--every", type=float, default=0.7, metavar="SECONDS", help="between two misfortunes")
    about = "without anything done: the end"
    parser.add_argument("--patience", type=float, default=PATIENCE, metavar="SECONDS", help=about)


PROOF = Proof(
    "tests.taskqueue.dispenser.proof", __doc__, Plan, run, options, ("sqlite", *SERVERS), CASES, WORDS
)

if __name__ == "__main__":
    sys.exit(PROOF.main(sys.argv[1:]))

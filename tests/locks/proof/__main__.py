"""Workers that use locks of every kind under misfortunes; exit code 1: a promise was broken.

python -m tests.locks.proof                                      for a minute on MariaDB
python -m tests.locks.proof --seconds 300 --database postgresql
python -m tests.locks.proof --hints                              a Redis tells who waits; it is killed, and hangs
python -m tests.locks.proof --without "semaphores: all or none"  a guard taken out: the judge must object
python -m tests.locks.proof --prove                              every guard, one after the other (--prove WORD: some)
"""

import argparse
import sys

from tests.locks.proof.prove import CASES, WORDS
from tests.locks.proof.run import Plan, run
from tests.proof import Proof
from tests.servers import SERVERS


def options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--seconds", type=float, default=60.0, metavar="SECONDS", help="how long")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="between two misfortunes")
    about = "have a Redis tell who waits, and kill it, and let it hang"
    parser.add_argument("--hints", action="store_true", help=about)


PROOF = Proof("tests.locks.proof", __doc__, Plan, run, options, ("sqlite", *SERVERS), CASES, WORDS)

if __name__ == "__main__":
    sys.exit(PROOF.main(sys.argv[1:]))

"""Processes that publish, read and listen, killed and stopped every so often, their database restarted.

python -m tests.locks.channels.proof             20,000 messages on MariaDB; exit code 1: a promise was broken
python -m tests.locks.channels.proof --messages 600 --every 0.7 --database postgresql
python -m tests.locks.channels.proof --prove     guards are taken out, one after the other: the judge must object
"""

import argparse
import sys

from tests.locks.channels.proof.prove import CASES, WORDS
from tests.locks.channels.proof.run import Plan, run
from tests.proof import Proof


def options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="between two misfortunes")


PROOF = Proof("tests.locks.channels.proof", __doc__, Plan, run, options, cases=CASES, words=WORDS)

if __name__ == "__main__":
    sys.exit(PROOF.main(sys.argv[1:]))

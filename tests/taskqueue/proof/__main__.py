"""Consumers of a stream under misfortunes; exit code 1 when a promise was broken (docs/reference/streams.md).

python -m tests.taskqueue.proof                                 2,000 tasks on MariaDB
python -m tests.taskqueue.proof --tasks 10000 --lanes 4 --database postgresql
"""

import argparse
import sys

from tests.proof import Proof
from tests.taskqueue.proof.run import Plan, run


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--every", type=float, default=3.0, metavar="SECONDS", help="between two misfortunes")


PROOF = Proof("tests.taskqueue.proof", __doc__, Plan, run, options)

if __name__ == "__main__":
    sys.exit(PROOF.main(sys.argv[1:]))

"""Nodes that handle timers, killed or stopped every so often, their database restarted; exit code 1: a broken promise.

python -m tests.taskqueue.timers.proof                             20,000 timers over 60 s on MariaDB
python -m tests.taskqueue.timers.proof --timers 600 --over 6 --every 1 --database postgresql
"""

import argparse
import sys

from tests.proof import Proof
from tests.taskqueue.timers.proof.run import Plan, run


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--timers", type=int, default=20_000)
    parser.add_argument("--over", type=float, default=60.0, metavar="SECONDS", help="in which they are due")
    parser.add_argument(
        "--every", type=float, default=2.0, metavar="SECONDS", help="between two kills or stops"
    )


PROOF = Proof("tests.taskqueue.timers.proof", __doc__, Plan, run, options)

if __name__ == "__main__":
    sys.exit(PROOF.main(sys.argv[1:]))

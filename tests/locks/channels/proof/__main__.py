"""Processes that publish, read and listen, killed and stopped every so often, their database restarted.

python -m tests.locks.channels.proof             20,000 messages on MariaDB; exit code 1: a promise was broken
python -m tests.locks.channels.proof --messages 600 --every 0.7 --database postgresql
python -m tests.locks.channels.proof --prove     guards are removed, one after the other: the checker must object
"""

from tests.locks.channels.proof.prove import CASES, WORDS
from tests.locks.channels.proof.terms import ChannelPlan
from tests.proof.command import Proof

PROOF = Proof("tests.locks.channels.proof", __doc__, ChannelPlan, cases=CASES, words=WORDS)

if __name__ == "__main__":
    PROOF.run_as_script()

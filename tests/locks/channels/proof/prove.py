"""The guards that are removed one at a time, to see that the checker objects."""

from tests.locks.channels.proof.judge import LOST, ORDER, TWICE, UNSAID
from tests.proof.cases import known, own

WORDS = ("--messages", "1000", "--every", "0.5")
CASES = (
    known("channels: the number is taken in the message's transaction", ORDER, UNSAID),
    known("channels: a cursor never goes back", TWICE),
    known("channels: a transaction that is tried again is not committed twice", TWICE),
    own(
        "channels: a message is done when the next one is asked for",
        "locks/channels/position.py",
        "        self._in_hand = number\n",
        "        self._in_hand = self._read[-1][0] if self._read else number\n",
        *(LOST, ORDER),
    ),
)

"""The guards that are taken out one at a time, to see that the judge objects."""

from tests.guards import MUTATIONS, Mutation
from tests.locks.channels.proof.judge import LOST, ORDER, TWICE, UNSAID

WORDS = ("--messages", "1000", "--every", "0.5")
KNOWN_TO_TESTS = {mutation.name: mutation for mutation in MUTATIONS}

CASES: dict[Mutation, tuple[str, ...]] = {
    KNOWN_TO_TESTS["channels: the number is taken in the message's transaction"]: (ORDER, UNSAID),
    KNOWN_TO_TESTS["channels: a cursor never goes back"]: (TWICE,),
    KNOWN_TO_TESTS["channels: a transaction that is tried again is not committed twice"]: (TWICE,),
    Mutation(
        "channels: a message is done when the next one is asked for",
        "locks/channels/position.py",
        "        self._in_hand = number\n",
        "        self._in_hand = self._read[-1][0] if self._read else number\n",
    ): (LOST, ORDER),
}

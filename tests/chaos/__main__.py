"""Real processes share rows while everything fails; exit code 1 if a promise was broken.

See docs/internals/reliability.md.

python -m tests.chaos --minutes 1                            on MariaDB
python -m tests.chaos --minutes 30 --database postgresql --json result.json
python -m tests.chaos --rate kills=5 --rate server_killed_every=10
python -m tests.chaos --forgetful                            a server that forgets commits: the checker must object
python -m tests.chaos --without "fence out of guard"         a guard removed: the checker must object
python -m tests.chaos --prove                                all of those, shortly; exit code 1 when one goes unnoticed
"""

from tests.chaos.prove import CASES, WORDS
from tests.chaos.terms import ChaosPlan
from tests.proof.command import Proof

PROOF = Proof("tests.chaos", __doc__, ChaosPlan, cases=CASES, words=WORDS)

if __name__ == "__main__":
    PROOF.run_as_script()

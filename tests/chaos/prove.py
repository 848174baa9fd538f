"""What is removed to see that the checker objects: durable commits, and one guard at a time."""

from tests.chaos.terms import FORGETFUL
from tests.guards import Mutation
from tests.proof.cases import Case, known

OVERLAP, FENCE, FORGOTTEN = (
    "two holders at once",
    "fence not higher than before",
    "grant forgotten by the server",
)
LATE, UNEXPECTED = "late write behind the guard", "undocumented error seen by a caller"


def _rates(**rates: float) -> tuple[str, ...]:
    return tuple(word for name, rate in rates.items() for word in ("--rate", f"{name}={rate}"))


# More of what a guard is there for than in a usual run, which lasts longer.
WORDS = ("--minutes", "0.33", *_rates(stops=4, held_up=6, kills=0.5, server_killed_every=0))
CRASHES = ("--forgetful", *_rates(server_killed_every=6, stops=0, held_up=0))
TRUST = Mutation(
    "the trust window",
    "leases/terms.py",
    "until = sent_at + valid_for - margin(valid_for)",
    "until = sent_at + 1_000 * valid_for",
)
CASES = (
    Case("durable commits", None, (FORGOTTEN,), CRASHES, tuple(FORGETFUL)),
    known("expiry out of claim", OVERLAP),
    known("fence out of renew, release, hand over", OVERLAP),
    known("fence out of release alone", OVERLAP),
    Case("the trust window", TRUST, (OVERLAP,)),
    known("the renewal out of guard", LATE),
    known("fence out of guard", LATE),
    known("a claim does not raise the fence", FENCE, "evidence that makes no sense"),
    known("all or nothing out of claim_all", UNEXPECTED),
)

"""Those of chaos; places in line last hardly longer than locks, so that what the dead had collected is used again."""

from tests.chaos.settings import *  # noqa: F403
from tests.chaos.settings import RESOURCEPOOL as CHAOS
from tests.locks.proof.terms import TICKET_TTL

RESOURCEPOOL = {**CHAOS, "TICKET_TTL": TICKET_TTL}

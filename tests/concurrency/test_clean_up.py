"""A program that is asked to end holds its leases while it cleans up."""

import signal
import time

from resourcepool import release_on_sigterm
from resourcepool.models import Proxy
from tests.app.rows import columns, new
from tests.spawned import Spawner

TTL = 1.0


def clean_up_slowly() -> None:
    """The clean-up takes longer than the ttl, so the keeper must continue meanwhile."""
    release_on_sigterm()
    with Proxy.pool.lease(ttl=TTL) as lease:
        try:
            print("holds", flush=True)
            time.sleep(600)
        finally:
            time.sleep(1.5 * TTL)
            lease.ensure_held()
            lease.renew()
            print("cleaned up under the lease", flush=True)


def test_a_lease_is_held_until_the_clean_up_has_ended(spawn: Spawner) -> None:
    proxy = new(Proxy)
    child = spawn(clean_up_slowly)
    child.line("holds")
    child.send(signal.SIGTERM)
    child.send(signal.SIGTERM)  # a second one does not interrupt it
    assert child.wait() == 128 + signal.SIGTERM
    assert "cleaned up under the lease" in child.output
    assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (2, "")

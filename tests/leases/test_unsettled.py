"""The reply to a release is lost and the server stays down, so its result is unknown."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from resourcepool.exceptions import DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from tests.app.rows import columns, new, steal
from tests.committed import Clock
from tests.concurrency.connection_cutter import Interference
from tests.resources.clients import LOST_CONNECTION

pytestmark = pytest.mark.only("mysql", "postgresql")  # SQLite has no server that could go away

ENDINGS: dict[str, Callable[[Any], object]] = {
    "release": lambda lease: lease.release(),
    "hand over": lambda lease: lease.hand_over("heir"),
}


@pytest.fixture
def interference() -> Iterator[Interference]:
    interference = Interference()
    with connection.execute_wrapper(interference):
        yield interference


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_handle_that_may_have_been_given_up_does_not_trust_itself(
    interference: Interference, ending: str
) -> None:
    row = new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False)
    interference.expect("", LOST_CONNECTION[connection.vendor], after=True, times=1_000)
    with pytest.raises(DatabaseUnavailable):
        ENDINGS[ending](lease)
    interference.expect("", OperationalError, times=0)
    assert columns(row)["fence"] == 2, "it did take effect"
    assert not lease.is_held


@pytest.mark.parametrize("cooldown", [0, 5])
def test_a_lease_that_was_lost_while_the_server_was_away_is_not_reported_as_released(
    interference: Interference, process_clock: Clock, cooldown: float
) -> None:
    row = new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False, cooldown=cooldown)
    thief = steal(row)
    verbs.release(connection, Proxy, row.pk, thief.fence, 0)
    process_clock.ahead += lease._terms.ttl
    interference.expect("UPDATE", LOST_CONNECTION[connection.vendor])
    with pytest.raises(LeaseLost):
        lease.release()


@pytest.mark.parametrize("cooldown", [0, 5])
def test_a_release_is_not_taken_for_a_loss_because_the_next_was_quick(
    interference: Interference, cooldown: float
) -> None:
    row = new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False, cooldown=cooldown)

    def lost_after_the_next_came() -> Exception:
        steal(row, "the next")
        return LOST_CONNECTION[connection.vendor]()

    interference.expect("UPDATE", lost_after_the_next_came, after=True)
    lease.release()
    assert columns(row)["holder"] == "the next"


def test_such_a_handle_is_not_renewed_and_can_be_given_up_again(interference: Interference) -> None:
    row = new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False)
    interference.expect("UPDATE", LOST_CONNECTION[connection.vendor], times=1_000)
    with pytest.raises(DatabaseUnavailable):
        lease.release()
    with pytest.raises(LeaseReleased, match="may have been released"):
        lease.ensure_held()
    interference.expect("", OperationalError, times=0)
    assert not keeper.is_renewing(lease)
    lease.release()
    assert columns(row)["fence"] == 2
    with pytest.raises(LeaseReleased, match="was released before"):
        lease.ensure_held()

"""A release whose reply was lost: row and ticket show whether it took effect."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from resourcepool.clock import monotonic
from resourcepool.db.retry import Unsettled
from resourcepool.exceptions import LeaseLost
from resourcepool.leases import verbs
from resourcepool.models import Proxy
from resourcepool.waiting import release as releases
from tests.app.rows import columns, granted, hold, new, several, steal
from tests.concurrency.connection_cutter import Interference
from tests.resources.clients import LOST_CONNECTION
from tests.waiting.handover_helpers import release
from tests.waiting.threads import given, ticket


class TestAReleaseWhoseReplyWasLost:
    """Row and ticket show whether it took effect."""

    def settled(self, row: Any, fence: int, trusted_until: float = 0.0) -> bool:
        return releases._settle(connection, Proxy, row.pk, fence, trusted_until)

    def test_did_not_take_effect_while_the_lease_stands(self) -> None:
        row = new(Proxy)
        with pytest.raises(Unsettled):
            self.settled(row, granted(row).fence)

    def test_took_effect_if_the_row_is_free(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        release(row, fence)
        assert self.settled(row, fence)

    @pytest.mark.parametrize("count", [1, 3])
    def test_took_effect_if_a_ticket_has_the_row(self, count: int) -> None:
        one, row = several(Proxy, 2)
        ticket(Proxy, count=count)
        if count > 1:
            release(one, granted(one).fence)
        fence = granted(row).fence
        release(row, fence)
        assert self.settled(row, fence)

    def test_is_not_trusted_if_the_row_was_leased_since(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        steal(row)
        assert not self.settled(row, fence)
        verbs.release(connection, Proxy, row.pk, fence + 1, 0)
        assert not self.settled(row, fence), "the thief has released it, not we"

    def test_took_effect_in_any_state_while_no_other_process_can_have_claimed_the_row(self) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        release(row, fence)
        granted(row, "next")
        assert self.settled(row, fence, trusted_until=monotonic() + 5)
        assert not self.settled(row, fence, trusted_until=monotonic() - 5)

    def test_had_no_effect_if_the_row_was_removed(self) -> None:
        row = new(Proxy)
        Proxy.objects.filter(pk=row.pk)._raw_delete("default")
        assert not self.settled(row, 1)


@pytest.mark.only("mysql", "postgresql")  # SQLite has no server that could go away
class TestALostConnection:
    @pytest.fixture
    def interference(self) -> Iterator[Interference]:
        interference = Interference()
        with connection.execute_wrapper(interference):
            yield interference

    @pytest.mark.parametrize("after", [True, False])
    @pytest.mark.parametrize("waits", [True, False])
    def test_in_the_middle_of_a_release_is_settled_by_row_and_ticket(
        self, interference: Interference, waits: bool, after: bool
    ) -> None:
        row = new(Proxy)
        lease, line = hold(row), [ticket(Proxy)] * waits
        interference.expect("UPDATE", LOST_CONNECTION[connection.vendor], after=after)
        lease.release()
        assert columns(row)["fence"] == 2
        assert [given(one) for one in line] == [[(row.pk, 2)]] * waits

    def test_does_not_hide_that_the_lease_was_lost(self, interference: Interference) -> None:
        row = new(Proxy)
        lease = hold(row)
        lease._trust.until -= 100
        verbs.release(connection, Proxy, row.pk, steal(row).fence, 0)
        interference.expect("UPDATE", LOST_CONNECTION[connection.vendor])
        with pytest.raises(LeaseLost):
            lease.release()

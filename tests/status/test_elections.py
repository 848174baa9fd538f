"""Who leads, and who could."""

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.elections.models import Election as ElectionRow, selector
from resourcepool.status.elections import ELECTIONS
from tests.app.rows import change, expire, granted, new
from tests.waiting.threads import ticket

pytestmark = pytest.mark.django_db


def test_a_leader_is_told_with_its_term_and_the_standbys_of_this_election_alone() -> None:
    row = new(ElectionRow, name="reports")
    grant = granted(row, "web-1")
    change(row, elected_at=DbLater(-90), elected_term=grant.fence)
    for name in ("reports", "reports", "others"):
        ticket(ElectionRow, selector=selector(name))
    one = ELECTIONS.get("reports")
    assert (one.leader, one.term, one.standbys, one.explanation) == ("web-1", grant.fence, 2, "")
    assert one.since >= 90
    assert 0 < one.expires_in <= 60.01


def test_how_long_it_leads_is_unknown_until_that_is_stored() -> None:
    row = new(ElectionRow, name="reports", elected_at=DbLater(-90))
    granted(row, "web-2")
    assert ELECTIONS.get("reports").since is None


def test_a_leader_that_died_leads_no_more() -> None:
    row = new(ElectionRow, name="reports")
    granted(row, "web-1")
    expire(row)
    one = ELECTIONS.get("reports")
    assert (one.leader, one.since, one.expires_in) == ("", None, None)
    assert one.explanation == "no leader and no standbys"

"""Who leads, as an operator reads it."""

import pytest

from resourcepool.elections.models import Election as ElectionRow
from tests.app.rows import granted, new
from tests.management.command_runner import run

pytestmark = pytest.mark.django_db


def test_each_election_is_shown_with_its_leader() -> None:
    granted(new(ElectionRow, name="reports"), "web-1")
    new(ElectionRow, name="mails")
    said = run("elections").out
    assert said.splitlines()[0].split() == [
        *("election", "status", "leader", "term", "leading", "for", "expires", "in", "standbys"),
    ]
    assert "mails: no leader and no standbys" in said
    (one,) = run("elections", "show", "reports", "--json").json["elections"]
    assert (one["leader"], one["term"], one["standbys"]) == ("web-1", 1, 0)
    assert "one of mails, reports" in run("elections", "show", "report").err

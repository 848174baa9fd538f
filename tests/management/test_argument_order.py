"""Ids come before or after the options; a reason is required only for changes."""

import pytest

from resourcepool.models import Proxy
from tests.app.rows import columns, hold, several
from tests.management.command_runner import run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("command", ["close", "drain"])
class TestArguments:
    def test_ids_may_follow_the_options(self, command: str) -> None:
        first, second, other = several(Proxy, 3)
        for row in (first, second, other):
            hold(row)
        done = run(command, "proxy", "--reason", "hangs", first.pk, "--limit", 5, second.pk)
        assert (done.code, done.err) == (0, "")
        as_before = columns(other)
        assert as_before["in_service"]
        assert as_before["holder"]
        assert columns(first) != columns(other)
        assert f"{first.pk} " in done.out
        assert f"{second.pk} " in done.out
        assert f"\n{other.pk} " not in done.out

    def test_what_only_lists_needs_no_reason(self, command: str) -> None:
        (row,) = several(Proxy, 1)
        hold(row)
        assert run(command, "proxy", row.pk, "--dry-run").code == 0
        refused = run(command, "proxy", row.pk)
        assert refused.err.startswith("--reason: required,")
        assert refused.code == 1
        assert columns(row)["in_service"]

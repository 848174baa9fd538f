"""The example of queues does what it says."""

import pytest

from tests.demo.examples import printed_by


@pytest.mark.timeout(300)
def test_servers_share_queues_come_go_and_are_killed() -> None:
    printed = printed_by("queues")
    assert "B is killed" in printed
    assert "was judged dead: no heartbeat for 3 s" in printed

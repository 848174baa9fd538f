"""The example of queues does what it says."""

from tests.demo.examples import printed_by


def test_servers_share_queues_come_go_and_are_killed() -> None:
    printed = printed_by("queues")
    assert "B is killed" in printed
    assert "presumed dead: no heartbeat for 3 s" in printed

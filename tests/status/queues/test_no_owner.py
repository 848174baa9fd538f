"""Why a queue has no owner."""

import pytest

from resourcepool.status.queues.problems import PossibleOwner, why_no_owner

EU, MARS = {"zone": "eu"}, {"zone": "mars"}
BOTH = {"zone": "eu", "disk": "ssd"}


@pytest.mark.parametrize(
    ("labels", "candidates", "said"),
    [
        ({}, [], "no server is running"),
        (MARS, [PossibleOwner(EU)], "no living server has zone=mars"),
        (BOTH, [PossibleOwner(EU)], "no living server has disk=ssd"),
        (
            BOTH,
            [PossibleOwner(EU), PossibleOwner({"disk": "ssd"})],
            "no living server has all of zone=eu, disk=ssd",
        ),
        (
            EU,
            [PossibleOwner(EU, is_draining=True), PossibleOwner(MARS)],
            "every server that may have it is draining",
        ),
        (
            EU,
            [PossibleOwner(EU, is_full=True)],
            "every server that may have it has as many queues as its limit allows",
        ),
        (EU, [PossibleOwner(EU)], "not assigned yet; a transaction may keep its row locked"),
    ],
)
def test_nobody_gets_a_queue_because(
    labels: dict[str, str], candidates: list[PossibleOwner], said: str
) -> None:
    assert why_no_owner(labels, candidates) == said


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (
            [PossibleOwner({}, is_full=True, name="A"), PossibleOwner({}, is_full=True, name="B")],
            "pinned to A, which has no room; every server that may have it has as many queues as its limit allows",
        ),
        (
            [PossibleOwner({}, is_full=True, name="B")],
            "every server that may have it has as many queues as its limit allows",
        ),
        ([PossibleOwner({}, is_draining=True, name="A")], "every server that may have it is draining"),
    ],
)
def test_a_pin_is_named_where_there_is_a_server_for_it(candidates: list[PossibleOwner], said: str) -> None:
    assert why_no_owner({}, candidates, "A") == said

"""The squares of a card."""

import pytest

from resourcepool.dashboard.containers import describe, resource_squares
from resourcepool.resources.state import State
from resourcepool.status.resources.activity import Cell


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell("17", "", State.FREE, "", None, None), "17: free"),
        (Cell("17", "", State.LEASED, "web1", 720.0, 40.0), "17: leased (web1), for 12 min, 40 s left"),
        (Cell("17", "a.example:80", State.FREE, "", None, None), "17: a.example:80, free"),
        (Cell("17", "", State.QUARANTINED, "banned", None, 7_300.0), "17: quarantined (banned), 2 h left"),
    ],
)
def test_a_square_describes_its_resource(cell: Cell, text: str) -> None:
    assert describe(cell) == text


def test_a_square_links_to_the_page_of_its_resource() -> None:
    html = resource_squares(
        [Cell("a/b", "", State.FREE, "", None, None)], "/admin/app/thing/0pk0/change/", "rp0"
    )
    assert 'href="/admin/app/thing/a_2Fb/change/"' in html

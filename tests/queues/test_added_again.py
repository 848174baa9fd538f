"""A queue that is removed and added again."""

import pytest

from resourcepool.queues import operating
from tests.queues.crew import NAME, dies, made, queue, replan, stranger

pytestmark = pytest.mark.usefixtures("transactional_db")


def test_goes_on_with_higher_fences_than_it_ever_had() -> None:
    """Whoever compares fences would otherwise refuse its new server and let a late old one in."""
    made(2)
    for name in "ABC":
        server = stranger(name)
        highest = queue("1").fence
        dies(server)
        replan(if_due=True)
    assert queue("1").fence > highest > 0
    highest = queue("1").fence
    operating.remove_queues(NAME, ["1"])
    operating.add_queues(NAME, ["1"])
    stranger("D")
    assert queue("1").fence > highest

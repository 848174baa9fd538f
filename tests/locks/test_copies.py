"""What belongs to this process is neither pickled nor copied, and says what to send in its place."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.elections import Election
from resourcepool.locks import Channel, Lock, Semaphore
from resourcepool.models import Proxy
from tests.app.rows import new

COPIES: dict[str, Callable[[Any], Any]] = {"pickle": pickle.dumps, "copy": copy.copy, "deepcopy": copy.deepcopy}
HELD: dict[str, Callable[[], Any]] = {
    "lease of a resource": lambda: new(Proxy) and Proxy.pool.acquire(),
    "lease of a lock": lambda: Lock("report").acquire().leases[0],  # type: ignore[union-attr]
    "hold": lambda: Semaphore("seats").acquire(),
    "term": lambda: Election("report").campaign(),
    "subscriber": lambda: Channel("news").subscribe(),
    "lock": lambda: Lock("report"),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("make", HELD.values(), ids=HELD)
def test_it_says_what_to_do_instead(make: Callable[[], Any], copied: Callable[[Any], Any]) -> None:
    held = make()
    what_to_do = (
        r"belongs to this process.*: (send|pass on)|cannot be pickled or copied: (send|subscribe|create)"
    )
    with pytest.raises(TypeError, match=what_to_do):
        copied(held)

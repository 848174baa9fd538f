"""State of one process, such as locks and threads: a forked child must not use its parent's."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

State = TypeVar("State")


def per_process(make: Callable[[], State]) -> State:
    """Return a new object, which a forked child initializes again."""
    state: Any = make()
    os.register_at_fork(after_in_child=state.__init__)
    return state  # type: ignore[no-any-return]

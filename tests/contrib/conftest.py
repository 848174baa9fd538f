"""Every test here works on committed rows, and holds nothing from before."""

from tests.committed import *  # noqa: F403 (fixtures)
from tests.locks.conftest import _nothing_held_from_before, _on_committed_rows

__all__ = ["_nothing_held_from_before", "_on_committed_rows"]

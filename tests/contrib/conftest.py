"""The tests of what is built on the task queue have its fixtures."""

from tests.committed import *  # noqa: F403 (fixtures)
from tests.taskqueue.conftest import _forgotten_handlers, _on_committed_rows, mute_broker

__all__ = ["_forgotten_handlers", "_on_committed_rows", "mute_broker"]

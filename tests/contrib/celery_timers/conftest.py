"""The fixtures of tests of the task queue."""

from tests.taskqueue.conftest import _forgotten_handlers, mute_broker

__all__ = ["_forgotten_handlers", "mute_broker"]

"""Hints: wake-ups sent to one process. Losing one costs time, never correctness.

A process that gets a hint reads its rows in the database, and acts only on these. With hints off, processes poll.
RESOURCEPOOL["HINTS"] selects the service that carries them.
"""

from resourcepool.hints.choice import load
from resourcepool.hints.process import (
    address,
    after_commit,
    expect,
    flush,
    flush_at_exit,
    forget,
    is_enabled,
    listen,
    notify,
    send,
    stop_listening,
)

__all__ = ["address", "expect", "forget", "notify"]
__all__ += ["after_commit", "flush", "flush_at_exit", "is_enabled"]
__all__ += ["listen", "load", "send", "stop_listening"]

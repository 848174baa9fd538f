"""Hints: "look now", sent to one process. Losing one costs time, never correctness, and none is believed.

A process that gets a hint looks at its rows in the database; what it does then depends on these alone. Everything
works with hints off, too, by looking from time to time. RESOURCEPOOL["HINTS"] chooses what carries them.
"""

from resourcepool.hints.choice import load
from resourcepool.hints.process import (
    address,
    after_commit,
    flush,
    flush_at_exit,
    is_enabled,
    listen,
    send,
    stop_listening,
)

__all__ = ["address", "after_commit", "flush", "flush_at_exit", "is_enabled"]
__all__ += ["listen", "load", "send", "stop_listening"]

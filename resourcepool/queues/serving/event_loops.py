"""Servers and asyncio: a server's calls block, and identify their users by their threads."""

import asyncio
import threading

from resourcepool.exceptions import BadOption


def refuse_event_loop() -> None:
    """Raise BadOption in a thread that runs an event loop: the loop would block, and its tasks would count as one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    name = threading.current_thread().name
    allowed = "it runs an event loop; run the server and its loop in another one, with asyncio.to_thread(..)"
    raise BadOption("thread", name, allowed)

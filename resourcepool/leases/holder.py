"""Who holds a lease, in words for people."""

import functools
import itertools
import os
import secrets
import socket
import threading

MAX_LENGTH = 200


def default_holder() -> str:
    """Return "host/pid/thread/number": readable, and never the same for two requests anywhere.

    The number begins with a random part of its own for every process, because hosts in containers may share
    their name and every pid 1.
    """
    return f"{_host}/{os.getpid()}/{_plain(threading.current_thread().name)}/{_incarnation}.{next(_requests)}"


@functools.lru_cache(maxsize=1_000)
def _plain(name: str) -> str:
    return "".join(c if c.isprintable() and c != "/" else "_" for c in name)[:60]


def _begin() -> None:
    global _incarnation, _requests
    _incarnation, _requests = secrets.token_hex(4), itertools.count(1)


_host = socket.gethostname()[:80]
_incarnation = ""
_requests = itertools.count(1)
_begin()
os.register_at_fork(after_in_child=_begin)

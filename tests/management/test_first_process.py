"""Commands that go on until they are told to stop, as a container runs them: as process 1, for which Linux ignores
every signal that it does not handle."""

import ctypes
import os
import signal

import pytest

from resourcepool.locks import Channel
from resourcepool.taskqueue import Stream
from tests.canary.test_commands import COMMANDS, FOR_EVER, options_of
from tests.committed import transactional_db
from tests.management.command_runner import manage
from tests.spawned import Spawner

__all__ = ["transactional_db"]

NEW_PROCESS_IDS = 0x2000_0000  # CLONE_NEWPID
REPEATING = [
    (f"resourcepool_{name}", option, "600")
    for name in COMMANDS
    for option in sorted(FOR_EVER & options_of(name))
]
UNTIL_STOPPED = [
    *REPEATING,
    ("resourcepool_channels", "listen", "config"),
    ("resourcepool_channels", "listen", "missing"),
    ("resourcepool_consume", "oracle"),
    ("resourcepool_timers",),
]

pytestmark = pytest.mark.django_db(transaction=True)


def be_first(*words: str) -> None:
    """In a child: run ``manage.py`` as process 1 if the system allows it, and forward SIGTERM."""
    ctypes.CDLL(None).unshare(NEW_PROCESS_IDS)
    pid = os.fork()
    if not pid:
        manage(*words)
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)


@pytest.mark.parametrize("words", UNTIL_STOPPED, ids=" ".join)
def test_sigterm_ends_it(words: tuple[str, ...], spawn: Spawner) -> None:
    Channel("config").publish(1)
    Stream.objects.create(name="oracle")
    service = spawn(be_first, *words)
    service.line()
    service.send(signal.SIGTERM)
    assert service.wait() == 0, service.output

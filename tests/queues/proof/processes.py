"""The server processes, which can be started, killed, stopped, continued and made to leave."""

import signal

from django.db import connection

from tests.chaos.fleet import Fleet, Member
from tests.chaos.wire import Wire


class ServerProcesses(Fleet):
    """Servers that are not replaced."""

    worker = "tests.queues.proof.worker:Worker"

    def _disguise(self, shift: str) -> dict[str, str] | None:
        # On SQLite the database's clock is that of the process itself.
        return None if shift and connection.vendor == "sqlite" else super()._disguise(shift)

    def destroy(self, member: Member) -> None:
        """Kill -9."""
        self._send(member, signal.SIGKILL)
        self.log.killed(member.number)
        self.members.remove(member)

    def ask_to_leave(self, member: Member, number: int) -> None:
        self._send(member, number)
        self.members.remove(member)


class QueueWire(Wire):
    """The relay between the servers and the database, for the statements about queues."""

    kinds = {
        "guard": ("UPDATE RESOURCEPOOL_QUEUE SET FENCE = RESOURCEPOOL_QUEUE.FENCE WHERE",) * 2,
        "plan": ("UPDATE RESOURCEPOOL_QUEUEGROUP SET GENERATION",) * 2,
        "renew": ("UPDATE RESOURCEPOOL_SERVER SET BUSY_BEFORE",) * 2,
        "commit": ("COMMIT",) * 2,
        "any": ("",) * 2,
    }

"""The server processes, which can be started, killed, stopped, continued and made to leave."""

import signal

from tests.chaos.fleet import Fleet, Member

# How the relay between the servers and the database recognizes statements about queues.
KINDS = {
    "guard": ("UPDATE RESOURCEPOOL_QUEUE SET FENCE = RESOURCEPOOL_QUEUE.FENCE WHERE",) * 2,
    "plan": ("UPDATE RESOURCEPOOL_QUEUEGROUP SET GENERATION",) * 2,
    "renew": ("UPDATE RESOURCEPOOL_SERVER SET BUSY_BEFORE",) * 2,
    "commit": ("COMMIT",) * 2,
    "any": ("",) * 2,
}


class ServerProcesses(Fleet):
    """Servers that are not replaced."""

    def destroy(self, member: Member) -> None:
        """Kill -9."""
        self._send(member, signal.SIGKILL)
        self.log.killed(member.number)
        self.members.remove(member)

    def ask_to_leave(self, member: Member, number: int) -> None:
        self._send(member, number)
        self.members.remove(member)

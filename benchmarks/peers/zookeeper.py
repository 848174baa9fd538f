"""A private ZooKeeper, of the jars of Debian's package ``zookeeper`` or of those in the folder BENCH_ZOOKEEPER."""

import os
import signal
import socket
from pathlib import Path

from tests.servers.server import Server, ServerMissing, program

JARS = "/usr/share/java"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# A session lasts two ticks at least: with the usual tick of 2 s none of 2 s would be given.
CONFIGURATION = """
tickTime=1000
dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
"""


class ZooKeeper(Server):
    """One server without others, as durable as it comes: each change is on the disk before it is answered."""

    name = "ZooKeeper"
    driver = "socket"
    users = ("zookeeper", "nobody")
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    def __init__(self) -> None:
        self.jars = Path(os.environ.get("BENCH_ZOOKEEPER", JARS))
        self.program = program("java")
        if not list(self.jars.glob("zookeeper*.jar")):
            raise ServerMissing(
                f"there is no zookeeper*.jar in {self.jars}, and BENCH_ZOOKEEPER names no folder"
            )
        super().__init__()

    def create(self) -> None:
        """Write what it reads."""
        self.data.mkdir()
        self.own(self.data)
        (self.folder / "zoo.cfg").write_text(CONFIGURATION.format(data=self.data, port=self.port))

    def command(self) -> list[str]:
        return [self.program, "-cp", f"{self.jars}/*", MAIN, str(self.folder / "zoo.cfg")]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

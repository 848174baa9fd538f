"""A private RabbitMQ."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.servers.server import Server, ServerMissing, free_port, program

# Debian's wrapper in /usr/sbin insists on the service's own folders.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitMQ(Server):
    """A RabbitMQ node of its own, with a name server (epmd) of its own."""

    name = "RabbitMQ"
    driver = "amqp"
    users = ("rabbitmq", "nobody")
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    def __init__(self, **options: Any) -> None:
        if not PROGRAM.exists():
            raise ServerMissing("rabbitmq-server is not installed")
        self.names, self.names_port, self.nodes_port = program("epmd"), free_port(), free_port()
        super().__init__(**options)

    def create(self) -> None:
        self.data.mkdir()
        self.own(self.data)

    def command(self) -> list[str]:
        settings = {
            "HOME": self.folder,
            "ERL_EPMD_PORT": self.names_port,
            "RABBITMQ_CONFIG_FILE": self.folder / "none",
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_DIST_PORT": self.nodes_port,
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.folder / "plugins",
            "RABBITMQ_LOG_BASE": self.folder,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_MNESIA_BASE": self.data,
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": self.port,
            "RABBITMQ_PID_FILE": self.folder / "pid",
            "RUNNING_UNDER_SYSTEMD": "true",  # the node itself is our child, no shell around it
        }
        return ["env", *(f"{name}={value}" for name, value in settings.items()), str(PROGRAM), *self.options]

    def end(self, sign: signal.Signals) -> None:
        super().end(sign)
        command = [self.names, "-port", str(self.names_port), "-kill"]
        subprocess.run(command, check=False, capture_output=True)

    def connect(self) -> Any:
        import amqp

        connection = amqp.Connection(f"127.0.0.1:{self.port}", userid="guest", password="guest")
        connection.connect()
        return connection

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

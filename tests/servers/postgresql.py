"""A private PostgreSQL server."""

import contextlib
import signal
from pathlib import Path
from typing import Any

from tests.servers.server import Server, program


class PostgreSQL(Server):
    """A PostgreSQL server."""

    name = "PostgreSQL"
    driver = "psycopg"
    users = ("postgres", "nobody")
    stop_signal = signal.SIGINT
    # Ends at once and recovers from its log at the next start, like SIGKILL; but leaves no backend to block that start.
    kill_signal = signal.SIGQUIT

    def __init__(self, **options: Any) -> None:
        self.find_programs()
        super().__init__(**options)

    def find_programs(self) -> None:
        """Find initdb and postgres; raises ServerMissing."""
        self.initdb, self.postgres = programs()

    def create(self) -> None:
        password = self.folder / "password"
        password.write_text(self.password)
        self.own(password)
        self.run(
            [
                self.initdb,
                f"--pgdata={self.data}",
                "--username=resourcepool",
                f"--pwfile={password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ]
        )

    def command(self) -> list[str]:
        return [
            self.postgres,
            f"-D{self.data}",
            f"--port={self.port}",
            "--listen_addresses=127.0.0.1",
            f"--unix_socket_directories={self.folder}",
            f"--max_connections={self.max_connections}",
            *self.options,
        ]

    def start(self) -> None:
        super().start()
        with contextlib.closing(self.connect()) as connection:
            connection.autocommit = True
            if not connection.execute("SELECT FROM pg_database WHERE datname = 'resourcepool'").rowcount:
                connection.execute("CREATE DATABASE resourcepool")

    def connect(self) -> Any:
        import psycopg

        address: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "dbname": "postgres"}
        return psycopg.connect(**address, user="resourcepool", password=self.password, connect_timeout=2)

    @property
    def url(self) -> str:
        return f"postgres://resourcepool:{self.password}@127.0.0.1:{self.port}/resourcepool"


def programs() -> tuple[str, str]:
    """Return initdb and postgres of the newest version; Debian keeps them away from PATH."""
    folders = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    if not folders:
        return program("initdb"), program("postgres")
    newest = max(folders, key=lambda folder: float(folder.parent.name))
    return str(newest / "initdb"), str(newest / "postgres")

"""A private MariaDB server."""

import signal
from typing import Any

from tests.servers.server import Server, program

USERS = """
ALTER USER root@localhost IDENTIFIED BY '{password}';
CREATE USER IF NOT EXISTS resourcepool@'127.0.0.1' IDENTIFIED BY '{password}';
CREATE USER IF NOT EXISTS resourcepool@localhost IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO resourcepool@'127.0.0.1', resourcepool@localhost WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS resourcepool;
"""


class MySQLProtocol(Server):
    """A server with the protocol of MySQL; ``timezone`` is the zone of its sessions, e.g. "+05:00"."""

    driver = "MySQLdb"
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    def __init__(self, *, timezone: str = "+00:00", **options: Any) -> None:
        self.timezone = timezone
        super().__init__(**options)

    def connect(self) -> Any:
        import MySQLdb

        address: dict[str, Any] = {"host": "127.0.0.1", "port": self.port}
        return MySQLdb.connect(**address, user="resourcepool", password=self.password, connect_timeout=2)

    @property
    def url(self) -> str:
        return f"mysql://resourcepool:{self.password}@127.0.0.1:{self.port}/resourcepool"


class MariaDB(MySQLProtocol):
    """A MariaDB server.

    It flushes at every commit (its default), as a server that keeps leases has to. Measured, that costs 0.14 ms a
    commit; too little to test on something else than what is recommended.
    """

    name = "MariaDB"
    users = ("mysql", "nobody")

    def __init__(self, **options: Any) -> None:
        self.own_options: list[str] = []
        self.find_programs()
        super().__init__(**options)

    def find_programs(self) -> None:
        """Find the server and its installer; raises ServerMissing."""
        self.mariadbd, self.installer = program("mariadbd"), program("mariadb-install-db")
        program("my_print_defaults")  # the installer calls it; Debian has it in mariadb-client-core

    def create(self) -> None:
        # Without a folder of its own for temporary tables it loses them to the next server that starts on this machine.
        self.run(
            [
                self.installer,
                "--no-defaults",
                *self.own_options,
                f"--datadir={self.data}",
                f"--tmpdir={self.folder}",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ]
        )
        users = self.folder / "users.sql"
        users.write_text(USERS.format(password=self.password))
        self.own(users)

    def command(self) -> list[str]:
        return [
            self.mariadbd,
            "--no-defaults",
            *self.own_options,
            f"--datadir={self.data}",
            f"--tmpdir={self.folder}",
            f"--socket={self.folder}/socket",
            f"--pid-file={self.folder}/pid",
            f"--init-file={self.folder}/users.sql",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--character-set-server=utf8mb4",
            f"--default-time-zone={self.timezone}",
            f"--max-connections={self.max_connections}",
            *self.options,
        ]

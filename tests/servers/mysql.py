"""A private server of Oracle's MySQL."""

import os
import signal
from typing import Any

from tests.servers.fetched import own_loader, tree
from tests.servers.mariadb import USERS
from tests.servers.server import Server


class MySQL(Server):
    """A MySQL server; ``timezone`` is the zone of its sessions, e.g. "+05:00".

    As MariaDB it flushes at every commit, and it writes a binary log: both are its defaults.
    """

    name = "MySQL"
    driver = "MySQLdb"
    users = ("root",)  # who else may read the folder that it was fetched into
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    def __init__(self, *, timezone: str = "+00:00", **options: Any) -> None:
        self.timezone, self.root = timezone, tree("mysql")
        self.loader = own_loader(self.root, "usr/lib/mysql", "usr/lib/mysql/private")
        super().__init__(**options)

    def create(self) -> None:
        self.run([*self.mysqld(), "--initialize-insecure"])
        (self.folder / "users.sql").write_text(USERS.format(password=self.password))

    def command(self) -> list[str]:
        return [
            *self.mysqld(),
            f"--socket={self.folder}/socket",
            f"--pid-file={self.folder}/pid",
            f"--init-file={self.folder}/users.sql",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--mysqlx=OFF",
            f"--default-time-zone={self.timezone}",
            f"--max-connections={self.max_connections}",
            "--sql-require-primary-key=ON",  # as some who host it have it
            *self.options,
        ]

    def mysqld(self) -> list[str]:
        """Return its program, and where it finds its own parts and its data."""
        return [
            *self.loader,
            f"{self.root}/usr/sbin/mysqld",
            "--no-defaults",
            *(["--user=root"] if os.geteuid() == 0 else []),
            f"--basedir={self.root}/usr",
            f"--lc-messages-dir={self.root}/usr/share/mysql",
            f"--plugin-dir={self.root}/usr/lib/mysql/plugin",
            "--secure-file-priv=NULL",
            f"--datadir={self.data}",
            f"--tmpdir={self.folder}",
        ]

    def connect(self) -> Any:
        import MySQLdb

        address: dict[str, Any] = {"host": "127.0.0.1", "port": self.port}
        return MySQLdb.connect(**address, user="resourcepool", password=self.password, connect_timeout=2)

    @property
    def url(self) -> str:
        return f"mysql://resourcepool:{self.password}@127.0.0.1:{self.port}/resourcepool"

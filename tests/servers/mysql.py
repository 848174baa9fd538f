"""A private server of Oracle's MySQL."""

import os
from typing import Any

from tests.servers.fetched import own_loader, tree
from tests.servers.mariadb import USERS, MySQLProtocol


class MySQL(MySQLProtocol):
    """A MySQL server.

    As MariaDB it flushes at every commit, and it writes a binary log: both are its defaults.
    """

    name = "MySQL"
    users = ("root",)  # who else may read the folder that it was fetched into

    def __init__(self, **options: Any) -> None:
        self.root = tree("mysql")
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

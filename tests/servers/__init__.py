"""Private database servers in a temporary folder, which is gone when they are.

For hand work ``python -m tests.servers mariadb`` starts one and prints its DATABASE_URL until Ctrl-C.
Nothing that already runs on this machine is touched.
"""

from tests.servers.mariadb import MariaDB
from tests.servers.mysql import MySQL
from tests.servers.newest import NewestMariaDB, NewestPostgreSQL
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import Server, ServerFailed, ServerMissing

SERVERS: dict[str, type[Server]] = {
    "mariadb": MariaDB,
    "mysql": MySQL,
    "postgresql": PostgreSQL,
    "newest-mariadb": NewestMariaDB,
    "newest-postgresql": NewestPostgreSQL,
}

__all__ = ["SERVERS", "MariaDB", "MySQL", "PostgreSQL", "Server", "ServerFailed", "ServerMissing"]

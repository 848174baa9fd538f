"""The problems of databases and models, each with its remedy; docs/reference/checks.md explains them.

An error breaks mutual exclusion in normal operation. A problem that breaks it only after a crash of the database server
is a warning in ``UNSAFE_WARNINGS``: developers may prefer speed, and ``migrate`` must not fail for them.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from django.conf import settings

from resourcepool.documentation import documented

_ISOLATION = 'Set OPTIONS: {"isolation_level": "read committed"} for this database.'
_STUCK = "statements may wait this long for a locked row, however short the timeout of acquire()."
_FORGETS = "loses leases that processes already use."
_FLUSH = "SET GLOBAL innodb_flush_log_at_trx_commit = 1; and the same line in the server's configuration."
# One hint for all SQLite problems: pasting a second one would overwrite the first.
_SQLITE = (
    'Set OPTIONS: {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL;'
    ' PRAGMA synchronous=FULL;"} for this database.'
)
_POSTGRESQL = (
    'Set OPTIONS: {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 10, "options":'
    ' "-c lock_timeout=5s -c idle_in_transaction_session_timeout=60s"} for this database.'
)
_KEEPS_LOCKS = (
    "%(fact)s is %(value)s s (0: no limit): a host that vanishes in guard() keeps its rows locked this long."
)
_KEY_FIELD = "Make it a resourcepool.db.dialect.KeyField and migrate."
_FOLDED = 'The column compares by %(collation)s: "Jobs" and "jobs" can be the same key.'

# Warnings that are as unsafe as errors.
UNSAFE_WARNINGS = frozenset(
    {"W004", "W005", "W006", "W007", "W008", "W009", "W010", "W018", "W019", "W020", "W040"}
)


class Text(NamedTuple):
    """The problem, and the statement or setting that fixes it."""

    message: str
    hint: str


# Keyed by code, or by "code case" where a code has several texts.
TEXTS = {
    "E004": Text(
        "Leases are not supported on %(database)s.",
        "Keep leased models on MariaDB, MySQL, PostgreSQL or SQLite (DATABASE_ROUTERS).",
    ),
    "E004 mariadb": Text(
        "MariaDB %(value)s is too old: it has no SKIP LOCKED.",
        "Upgrade the server to MariaDB 10.6 or newer.",
    ),
    "E004 mysql": Text(
        "MySQL %(value)s is too old: it has no SKIP LOCKED.",
        "Upgrade the server to MySQL 8.0.11 or newer.",
    ),
    "E004 sqlite": Text(
        "SQLite %(value)s is too old: it has no RETURNING.",
        "Use a Python with SQLite 3.35 or newer: python -c 'import sqlite3; print(sqlite3.sqlite_version)'",
    ),
    "E005": Text(
        'OPTIONS["client_flag"] replaces the flag FOUND_ROWS that Django sets: unchanged rows are not counted, so a'
        " renewal can look like a lost lease.",
        'Remove "client_flag" from OPTIONS, or add to it: client_flag | MySQLdb.constants.CLIENT.FOUND_ROWS.',
    ),
    "E006": Text(
        "Its table uses the engine %(engine)s, which has no transactions and loses data in a crash.",
        "ALTER TABLE `%(table)s` ENGINE = InnoDB;",
    ),
    "E007": Text(
        "The database server is read-only: a replica, or in the middle of a failover. Leasing fails here; a user who"
        " may write anyway can lease a row twice.",
        "Have db_for_write() of your DATABASE_ROUTERS return the primary for leased models, or correct HOST.",
    ),
    "E008": Text(
        "The database routers write this model to different databases: %(aliases)s. One row can be leased once in"
        " each.",
        "Have db_for_write() of your DATABASE_ROUTERS always return the same alias for this model.",
    ),
    "E009": Text(
        "The isolation level is %(value)s: a claim that is later rolled back may be treated as granted.",
        _ISOLATION,
    ),
    "E010": Text(
        "AUTOCOMMIT is off for this database: a claim is invisible to other processes until your code commits, and is"
        " rolled back if it does not.",
        'Remove "AUTOCOMMIT": False; use transaction.atomic() where you want a transaction.',
    ),
    "E013": Text(
        "TIME_ZONE is %(value)s for this database: leases are stored in UTC, which Django then reads as that zone's"
        " time. busy_before of a leased row may appear to have passed, and times entered in forms are hours off.",
        'Remove "TIME_ZONE" from this database, or keep leased models in another one (DATABASE_ROUTERS).',
    ),
    "E018": Text(
        "The connection's character set is %(value)s: other characters raise an error, or are stored as"
        ' "?", so that two names can become the same key.',
        'Remove "charset" from OPTIONS of this database, or set it to "utf8mb4"; check init_command and'
        " read_default_file, too.",
    ),
    "E019": Text(
        "innodb_default_row_format is %(value)s, and tables are missing: `migrate` would stop half-way with"
        " error 1709 or 1071, because their index keys are longer than 767 bytes.",
        "SET GLOBAL innodb_default_row_format = dynamic; and the same line in the server's configuration.",
    ),
    "E019 innodb_page_size": Text(
        "innodb_page_size is %(value)s, and tables are missing: `migrate` would stop half-way with error 1071,"
        " because their index keys are too long for such pages.",
        "Keep leased models on a database server with pages of 16 KiB (chosen when its data directory is created).",
    ),
    "W003": Text(
        "The isolation level is %(value)s: it causes lock waits, deadlocks and serialization failures that READ"
        " COMMITTED avoids.",
        _ISOLATION,
    ),
    "W004": Text(
        f"innodb_flush_log_at_trx_commit is %(value)s: the log is written once a second, so a crash of the database"
        f" server {_FORGETS}",
        _FLUSH,
    ),
    "W004 power": Text(
        "innodb_flush_log_at_trx_commit is %(value)s: the log is flushed once a second, so a crash of the machine or a"
        f" power cut {_FORGETS}",
        _FLUSH,
    ),
    "W005": Text(
        "The binary log is on and sync_binlog is %(value)s: after a power cut, recovery rolls back commits that are"
        f" not in that log and {_FORGETS}",
        "SET GLOBAL sync_binlog = 1; and the same line in the server's configuration.",
    ),
    "W006": Text(
        "This is a Galera node: if clients write to several nodes, one row can be leased on each of them.",
        "Send all writes of leased models to one node (one HOST, no balancing), then silence this check.",
    ),
    "W007": Text(
        "synchronous_commit is off: a commit is not yet on disk when it returns, so a crash of the database server"
        f" {_FORGETS}",
        "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf(); or remove it from OPTIONS.",
    ),
    "W008": Text(
        "%(fact)s is off: a crash of the machine loses commits or damages the database.",
        "ALTER SYSTEM SET %(fact)s = on; SELECT pg_reload_conf();",
    ),
    "W009": Text(
        "This server replicates from another one: if leases are written on both, one row can be leased twice.",
        "Point DATABASE_ROUTERS and HOST of every process to the same server; on a mere replica:"
        " SET GLOBAL read_only = 1; If this is the primary, silence this check.",
    ),
    "W010": Text(
        "Leased models are written here, but its TEST setting declares it a mirror of %(value)s: replicas cannot grant"
        " leases.",
        "Have db_for_write() of your DATABASE_ROUTERS return the primary for leased models, or remove"
        ' TEST: {"MIRROR": ..}.',
    ),
    "W011": Text(_FOLDED, _KEY_FIELD),
    "W011 mysql": Text(
        _FOLDED,
        f"{_KEY_FIELD} If it already is one: ALTER TABLE `%(table)s` MODIFY `%(column)s` VARCHAR(%(length)d) CHARACTER"
        " SET utf8mb4 COLLATE utf8mb4_bin NOT NULL;",
    ),
    "W012": Text(
        f"innodb_lock_wait_timeout is %(value)s s: {_STUCK}",
        'Set OPTIONS: {"init_command": "SET innodb_lock_wait_timeout = 5"} for this database, or add it to the SET that'
        " is there.",
    ),
    "W012 lock_timeout": Text(
        f"lock_timeout is %(value)s s (0: no limit): {_STUCK}",
        _POSTGRESQL,
    ),
    "W013": Text(
        "DISABLE_SERVER_SIDE_CURSORS suggests a pooler in transaction mode: it passes the session settings of the"
        " background threads on to other clients.",
        "Connect directly, or through a pooler in session mode; then remove DISABLE_SERVER_SIDE_CURSORS.",
    ),
    "W040": Text(
        "The connection goes through a pooler in transaction mode: limits that background threads set for their"
        " sessions (statement_timeout, lock_timeout, idle_in_transaction_session_timeout) reach all its other clients.",
        "Connect directly, or through a pooler in session mode (PgBouncer: pool_mode = session).",
    ),
    "W042": Text(
        'OPTIONS has no "%(fact)s": a network that drops connections silently makes calls wait without a limit.',
        _POSTGRESQL,
    ),
    "W042 connect_timeout": Text(
        'OPTIONS has no "%(fact)s": while the database server does not answer, calls wait long for a connection.',
        'Add "connect_timeout": 5 to OPTIONS of this database.',
    ),
    "W042 read_timeout": Text(
        'OPTIONS has no "%(fact)s": if the database server freezes, or the network drops connections silently, calls'
        " wait without a limit, whatever the timeout of acquire().",
        'Add "read_timeout": 30, "write_timeout": 30 to OPTIONS of this database: longer than its longest statement.',
    ),
    "W043": Text(_KEEPS_LOCKS, _POSTGRESQL),
    "W043 idle_transaction_timeout": Text(
        _KEEPS_LOCKS,
        'Set OPTIONS: {"init_command": "SET innodb_lock_wait_timeout = 5, idle_transaction_timeout = 60"} for this'
        " database.",
    ),
    "W043 wait_timeout": Text(
        _KEEPS_LOCKS,
        'Set OPTIONS: {"init_command": "SET innodb_lock_wait_timeout = 5, wait_timeout = 600"} for this database.',
    ),
    "W014": Text(
        'Transactions that read before they write fail at once with "database is locked", whatever the timeout.',
        _SQLITE,
    ),
    "W015": Text("journal_mode is %(value)s: readers block writers.", _SQLITE),
    "W016": Text(
        'Statements wait only %(value)s s for a lock, then fail with "database is locked".',
        _SQLITE,
    ),
    "W017": Text(
        "synchronous is %(value)s: a power cut loses the last commits, and their fences are granted again.",
        _SQLITE,
    ),
    "W018": Text(
        "The database is in memory: each process has its own, so all processes can lease the same rows.",
        'Use a file, in tests too: "NAME": BASE_DIR / "db.sqlite3", "TEST": {"NAME": "test.sqlite3"}.',
    ),
    "W019": Text(
        "Resources are leased on database %(alias)r, but the table of waiters is missing there: acquire()"
        " raises NotMigrated.",
        "Allow resourcepool.Ticket on %(alias)r in allow_migrate() of your DATABASE_ROUTERS, then run: manage.py"
        " migrate resourcepool --database=%(alias)s",
    ),
    "W020": Text(
        "The database cannot be checked: %(why)s",
        "Start it, or correct DATABASES; then run the check again.",
    ),
    "W021": Text(
        "Its table %(table)r is missing on database %(alias)r.",
        "manage.py migrate --database=%(alias)s",
    ),
    "W022": Text(
        "Cannot measure %(what)s: %(why)s",
        "Check the log of the database server, and whether this user may read and write the tables of resourcepool.",
    ),
    "W023": Text(
        'The statement "%(name)s" %(problem)s: slow once there are many rows.',
        "Compare the indexes with the output of `manage.py sqlmigrate`, and update the statistics: ANALYZE.",
    ),
    "W024": Text(
        "%(count)s tickets were left behind by crashed processes. They block no waiter, but every query for waiters"
        " reads them.",
        "The next process that waits for the same pool removes them. To remove them now: DELETE FROM"
        " resourcepool_ticket WHERE busy_before is more than a minute ago (UTC).",
    ),
    "W038": Text(
        "The database's character set is %(value)s: columns of this package hold all characters, but those of your own"
        " models and of Django do not; other characters raise an error.",
        "ALTER DATABASE CHARACTER SET utf8mb4; and for each existing table: ALTER TABLE .. CONVERT TO CHARACTER"
        " SET utf8mb4;",
    ),
    "W038 server_encoding": Text(
        "The database's encoding is %(value)s: other characters raise an error, and in results and errors of handlers"
        r" are stored as \u540d.",
        "Dump it, create it again with ENCODING 'UTF8' (TEMPLATE template0), and restore it.",
    ),
    "W039": Text(
        "Columns of its table hold only the characters of %(characters)s (%(columns)s): others raise an error, and in"
        r" results and errors of handlers are stored as \u540d.",
        "ALTER TABLE `%(table)s` %(changes)s;",
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the database or model ``about``, and how to fix it.

    Attributes:
        code: such as "E005" or "W012"; an error makes ``check`` and ``migrate`` fail.
        is_unsafe_warning: a warning under which leases are not exclusive, or cannot be acquired.
    """

    code: str
    about: str
    message: str
    hint: str
    is_unsafe_warning: bool = False

    ALSO: ClassVar = ("level", "id", "link")

    @property
    def id(self) -> str:
        """Its id in SILENCED_SYSTEM_CHECKS."""
        return f"resourcepool.{self.code}"

    @property
    def level(self) -> str:
        """Either "unsafe", "advice", or "silenced" by the project."""
        if self.id in settings.SILENCED_SYSTEM_CHECKS:
            return "silenced"
        return "unsafe" if self.is_unsafe else "advice"

    @property
    def link(self) -> str:
        """The place in the documentation."""
        return documented("reference/checks", self.code.lower())

    @property
    def is_error(self) -> bool:
        """Whether ``check`` and ``migrate`` must fail."""
        return self.code.startswith("E")

    @property
    def is_unsafe(self) -> bool:
        """Whether leases are unreliable while this problem exists."""
        return self.is_error or self.is_unsafe_warning


def problem(
    code: str, about: str, case: str = "", *, is_unsafe_warning: bool = False, **values: Any
) -> Problem:
    """Return the problem with this code.

    Args:
        case: selects among several texts of the code.
        is_unsafe_warning: mark this one as unsafe, even if the code usually is not.
        values: the parameters of the texts.
    """
    text = TEXTS.get(f"{code} {case}") or TEXTS[code]
    return Problem(
        code, about, text.message % values, text.hint % values, is_unsafe_warning or code in UNSAFE_WARNINGS
    )

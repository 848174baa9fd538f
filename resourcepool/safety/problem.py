"""The problems of databases and models, each with its remedy; docs/checks.md explains them.

An error breaks the promise of one holder in normal operation. A problem that breaks it only after a crash of the server
is a warning in ``UNSAFE_WARNINGS``: developers may prefer speed, and ``migrate`` must not fail for them.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from django.conf import settings

_ISOLATION = 'Set OPTIONS: {"isolation_level": "read committed"} for this database.'
_STUCK = "so long a statement waits for a locked row, however short the timeout of acquire()."
_FORGETS = "forgets grants that processes already act on."
_FLUSH = "SET GLOBAL innodb_flush_log_at_trx_commit = 1; and the same line in the server's configuration."
# One for all that is said of SQLite: of two, the second would be pasted over the first.
_SQLITE = (
    'Set OPTIONS: {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL;'
    ' PRAGMA synchronous=FULL;"} for this database.'
)
_KEY_FIELD = "Make it a resourcepool.dialect.KeyField and migrate."
_FOLDED = 'The column compares by %(collation)s: "Jobs" and "jobs" can be the same key.'

# Warnings that are as unsafe as errors.
UNSAFE_WARNINGS = frozenset(
    {"W004", "W005", "W006", "W007", "W008", "W009", "W010", "W018", "W019", "W020", "W040"}
)


class Text(NamedTuple):
    """The problem, and the statement or setting that solves it."""

    message: str
    hint: str


# By code; where one code has several texts, by code and case.
TEXTS = {
    "E004": Text(
        "Leases cannot be kept on %(database)s.",
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
        "Use a Python that brings SQLite 3.35 or newer: python -c 'import sqlite3; print(sqlite3.sqlite_version)'",
    ),
    "E005": Text(
        'OPTIONS["client_flag"] has replaced the flag FOUND_ROWS that Django sets: rows that stay as they are do not'
        " count as found, so a renewal can look like a loss.",
        'Remove "client_flag" from OPTIONS, or add to it: client_flag | MySQLdb.constants.CLIENT.FOUND_ROWS.',
    ),
    "E006": Text(
        "Its table is kept by %(engine)s, which has no transactions and forgets in a crash.",
        "ALTER TABLE `%(table)s` ENGINE = InnoDB;",
    ),
    "E007": Text(
        "The server is read-only: a replica, or in the middle of a failover. Nothing can be leased here; or, by a"
        " user who may write all the same, twice.",
        "Have db_for_write() of your DATABASE_ROUTERS return the primary for leased models, or correct HOST.",
    ),
    "E008": Text(
        "The database routers write it now to one database, now to another: %(aliases)s. So one row can be granted"
        " once in each.",
        "Have db_for_write() of your DATABASE_ROUTERS always return the same alias for this model.",
    ),
    "E009": Text(
        "The isolation level is %(value)s: a claim that is rolled back later is taken for granted.",
        _ISOLATION,
    ),
    "E010": Text(
        "AUTOCOMMIT is off for this database: a claim stays open until somebody commits, invisible to everybody else,"
        " and is undone when nobody does.",
        'Remove "AUTOCOMMIT": False; use transaction.atomic() where you want a transaction.',
    ),
    "E013": Text(
        "TIME_ZONE is %(value)s for this database: leases are kept in UTC, which Django then reads as that zone's time."
        " A held row's busy_before may look over for hours, and a moment that somebody enters ends hours off.",
        'Remove "TIME_ZONE" from this database, or keep leased models in another one (DATABASE_ROUTERS).',
    ),
    "E018": Text(
        "The connection's character set is %(value)s: text with other characters ends in an error, or is stored as"
        ' "?", so that two names can become the same key.',
        'Remove "charset" from OPTIONS of this database, or set it to "utf8mb4", and what else sets it: init_command,'
        " read_default_file.",
    ),
    "E019": Text(
        "innodb_default_row_format is %(value)s, and tables are still to be made: `migrate` would end half-way, with"
        " error 1709 or 1071, because the keys of their indexes are longer than 767 bytes.",
        "SET GLOBAL innodb_default_row_format = dynamic; and the same line in the server's configuration.",
    ),
    "E019 innodb_page_size": Text(
        "innodb_page_size is %(value)s, and tables are still to be made: `migrate` would end half-way, with error 1071,"
        " because the keys of their indexes are longer than such pages allow.",
        "Keep leased models on a server with pages of 16 KiB, which is chosen when its data folder is made.",
    ),
    "W003": Text(
        "The isolation level is %(value)s: statements wait for and undo each other (deadlocks, serialization"
        " failures) where READ COMMITTED would not.",
        _ISOLATION,
    ),
    "W004": Text(
        f"innodb_flush_log_at_trx_commit is %(value)s: the log is written once a second, so a crash of the server"
        f" {_FORGETS}",
        _FLUSH,
    ),
    "W004 power": Text(
        "innodb_flush_log_at_trx_commit is %(value)s: the log is flushed once a second, so a crash of the machine or a"
        f" power cut {_FORGETS}",
        _FLUSH,
    ),
    "W005": Text(
        "There is a binary log and sync_binlog is %(value)s: after a power cut, recovery undoes what is not in that log"
        f" and {_FORGETS}",
        "SET GLOBAL sync_binlog = 1; and the same line in the server's configuration.",
    ),
    "W006": Text(
        "This is a Galera node: if several nodes are written, one row can be granted on each of them.",
        "Send all writes of leased models to one node (one HOST, no balancing), then silence this check.",
    ),
    "W007": Text(
        "synchronous_commit is off: a commit is not on the disk when it returns, so a crash of the server"
        f" {_FORGETS}",
        "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf(); or take it out of OPTIONS.",
    ),
    "W008": Text(
        "%(fact)s is off: a crash of the machine loses commits or damages the database.",
        "ALTER SYSTEM SET %(fact)s = on; SELECT pg_reload_conf();",
    ),
    "W009": Text(
        "This server replicates from another one: if leases are decided there, too, one row can be granted twice.",
        "Have DATABASE_ROUTERS and HOST name the same server for every process; on what is only a replica:"
        " SET GLOBAL read_only = 1; If it is the one that is written, silence this check.",
    ),
    "W010": Text(
        "Leased models are written here, but its TEST setting calls it a mirror of %(value)s: a replica decides"
        " nothing.",
        "Have db_for_write() of your DATABASE_ROUTERS return the primary for leased models, or remove"
        ' TEST: {"MIRROR": ..}.',
    ),
    "W011": Text(_FOLDED, _KEY_FIELD),
    "W011 mysql": Text(
        _FOLDED,
        f"{_KEY_FIELD} If it is one: ALTER TABLE `%(table)s` MODIFY `%(column)s` VARCHAR(%(length)d) CHARACTER SET"
        " utf8mb4 COLLATE utf8mb4_bin NOT NULL;",
    ),
    "W012": Text(
        f"innodb_lock_wait_timeout is %(value)s s: {_STUCK}",
        'Set OPTIONS: {"init_command": "SET innodb_lock_wait_timeout = 5"} for this database.',
    ),
    "W012 lock_timeout": Text(
        f"lock_timeout is %(value)s s (0: no end): {_STUCK}",
        'Set OPTIONS: {"options": "-c lock_timeout=5s"} for this database.',
    ),
    "W013": Text(
        "DISABLE_SERVER_SIDE_CURSORS suggests a pooler in transaction mode: it hands the session settings of the"
        " background threads on to other clients.",
        "Connect directly, or through a pooler in session mode; then remove DISABLE_SERVER_SIDE_CURSORS.",
    ),
    "W040": Text(
        "A pooler in transaction mode is in between: the limits that background threads set for their sessions"
        " (statement_timeout, lock_timeout, idle_in_transaction_session_timeout) reach all of its other clients.",
        "Connect directly, or through a pooler in session mode (PgBouncer: pool_mode = session).",
    ),
    "W014": Text(
        'Transactions that read first and write later fail at once with "database is locked", whatever the timeout.',
        _SQLITE,
    ),
    "W015": Text("journal_mode is %(value)s: whoever reads keeps everybody from writing.", _SQLITE),
    "W016": Text(
        'A statement waits only %(value)s s for its turn, then fails with "database is locked".',
        _SQLITE,
    ),
    "W017": Text(
        "synchronous is %(value)s: a power cut forgets the last commits, and their fences are given out again.",
        _SQLITE,
    ),
    "W018": Text(
        "The database is in memory: every process has its own, and so every one is granted everything.",
        'Use a file, in tests too: "NAME": BASE_DIR / "db.sqlite3", "TEST": {"NAME": "test.sqlite3"}.',
    ),
    "W019": Text(
        "Resources are leased on database %(alias)r, but the table of those who wait for them is not there: acquire()"
        " raises NotMigrated.",
        "Let allow_migrate() of your DATABASE_ROUTERS pass resourcepool.Ticket on %(alias)r, then run: manage.py"
        " migrate resourcepool --database=%(alias)s",
    ),
    "W020": Text(
        "It could not be asked whether it is safe: %(why)s",
        "Start it, or correct DATABASES; then run the check again.",
    ),
    "W021": Text(
        "Its table %(table)r is not there on database %(alias)r.",
        "manage.py migrate --database=%(alias)s",
    ),
    "W022": Text(
        "Measuring %(what)s failed: %(why)s",
        "Look at the server's log; may this user read and write the tables of resourcepool?",
    ),
    "W023": Text(
        'The statement "%(name)s" %(problem)s: slow once there are many rows.',
        "Compare the indexes with what `manage.py sqlmigrate` shows, and bring the statistics up to date: ANALYZE.",
    ),
    "W024": Text(
        "%(count)s tickets have been left behind by processes that died. They block nobody, but every look at the line"
        " reads them.",
        "They go when somebody next waits for the same pool. At once: DELETE FROM resourcepool_ticket WHERE"
        " busy_before is more than a minute ago (UTC).",
    ),
    "W038": Text(
        "The database's character set is %(value)s: columns of this package hold all characters, but those of your own"
        " models and of Django do not; what they refuse ends in an error.",
        "ALTER DATABASE CHARACTER SET utf8mb4; and for each table that is there: ALTER TABLE .. CONVERT TO CHARACTER"
        " SET utf8mb4;",
    ),
    "W038 server_encoding": Text(
        "The database's encoding is %(value)s: other characters end in an error, and in results and errors of handlers"
        r" are stored as \u540d.",
        "Dump it, make it anew with ENCODING 'UTF8' (TEMPLATE template0), and restore it.",
    ),
    "W039": Text(
        "Columns of its table hold the characters of %(characters)s alone (%(columns)s): others end in an error, and in"
        r" results and errors of handlers are stored as \u540d.",
        "ALTER TABLE `%(table)s` %(changes)s;",
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the database or model ``about``, and how to solve it.

    Attributes:
        code: "E005" or "W012"; an error makes ``check`` and ``migrate`` fail.
        voids: a warning under which one holder at a time is not guaranteed, or nothing can be leased.
    """

    code: str
    about: str
    message: str
    hint: str
    voids: bool = False

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
        """Where it is explained."""
        return f"docs/checks.md#{self.code.lower()}"

    @property
    def is_error(self) -> bool:
        """Whether ``check`` and ``migrate`` must fail."""
        return self.code.startswith("E")

    @property
    def is_unsafe(self) -> bool:
        """Whether leases must not be relied on while this is so."""
        return self.is_error or self.voids


def problem(code: str, about: str, case: str = "", *, voids: bool = False, **values: Any) -> Problem:
    """Return the problem of this code.

    Args:
        case: which of the code's texts.
        voids: it does here, although problems of this code do not always.
        values: the parameters of the texts.
    """
    text = TEXTS.get(f"{code} {case}") or TEXTS[code]
    return Problem(code, about, text.message % values, text.hint % values, voids or code in UNSAFE_WARNINGS)

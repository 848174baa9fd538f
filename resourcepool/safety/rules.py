"""What is asked of a server, and why; docs/checks.md explains each in more words.

An error is what breaks the promise in normal operation. What breaks it after a crash of the server is a
warning that voids it: a developer may choose speed, and ``migrate`` must not refuse him.
"""

from resourcepool.safety.rule import Rule

LONGEST_LOCK_WAIT = 10  # seconds
LONGEST_SILENCE = 600  # seconds
SHORTEST_BUSY_TIMEOUT = 5  # seconds
READ_COMMITTED = 'Set OPTIONS: {"isolation_level": "read committed"} for this database.'
STUCK = "so long a statement waits for a locked row, however short the timeout of acquire()."
FORGETS = "forgets grants that processes already act on."


def _is_dirty(level: str) -> bool:
    return _words(level) == "read uncommitted"


def _is_strict(level: str) -> bool:
    return _words(level) not in ("read committed", "read uncommitted")


def _words(level: str) -> str:
    return level.lower().replace("-", " ")


EVERYWHERE = (
    Rule(
        "W010",
        "TEST MIRROR",
        bool,
        "Leased models are written here, but its TEST setting calls it a mirror of {value}: a replica decides nothing.",
        "Have db_for_write() of your DATABASE_ROUTERS return the primary for leased models, or remove"
        ' TEST: {"MIRROR": ..}.',
        voids=True,
    ),
    Rule(
        "E007",
        "read_only",
        bool,
        "The server is read-only: a replica, or in the middle of a failover. Nothing can be leased here; or, by a"
        " user who may write all the same, twice.",
        "Have db_for_write() of your DATABASE_ROUTERS return the primary for leased models, or correct HOST.",
    ),
    Rule(
        "E010",
        "AUTOCOMMIT",
        lambda is_on: not is_on,
        "AUTOCOMMIT is off for this database: a claim stays open until somebody commits, invisible to everybody else,"
        " and is undone when nobody does.",
        'Remove "AUTOCOMMIT": False; use transaction.atomic() where you want a transaction.',
    ),
    Rule(
        "E013",
        "TIME_ZONE",
        lambda zone: zone not in ("UTC", "Etc/UTC"),
        "TIME_ZONE is {value} for this database: leases are kept in UTC, which Django then reads as that zone's time. A"
        " held row's busy_before may look over for hours, and a moment that somebody enters ends hours off.",
        'Remove "TIME_ZONE" from this database, or keep leased models in another one (DATABASE_ROUTERS).',
    ),
    Rule(
        "W003",
        "transaction_isolation",
        _is_strict,
        "The isolation level is {value}: statements wait for and undo each other (deadlocks, serialization"
        " failures) where READ COMMITTED would not.",
        READ_COMMITTED,
    ),
)

MYSQL = (
    Rule(
        "E004",
        "mariadb",
        lambda version: version < (10, 6),
        "MariaDB {value} is too old: it has no SKIP LOCKED.",
        "Upgrade the server to MariaDB 10.6 or newer.",
    ),
    Rule(
        "E004",
        "mysql",
        lambda version: version < (8, 0, 1),
        "MySQL {value} is too old: it has no SKIP LOCKED.",
        "Upgrade the server to MySQL 8.0.1 or newer.",
    ),
    Rule(
        "E005",
        "counts_matched_rows",
        lambda counts: not counts,
        'OPTIONS["client_flag"] has replaced the flag FOUND_ROWS that Django sets: rows that stay as they are do not'
        " count as found, so a renewal can look like a loss.",
        'Remove "client_flag" from OPTIONS, or add to it: client_flag | MySQLdb.constants.CLIENT.FOUND_ROWS.',
    ),
    Rule(
        "E009",
        "transaction_isolation",
        _is_dirty,
        "The isolation level is {value}: a claim that is rolled back later is taken for granted.",
        READ_COMMITTED,
    ),
    *(
        Rule(
            "W004",
            "innodb_flush_log_at_trx_commit",
            is_broken,
            f"innodb_flush_log_at_trx_commit is {{value}}: {why} {FORGETS}",
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1; and the same line in the server's configuration.",
            voids=True,
        )
        # 3 is MariaDB's, and flushes more often still than 1.
        for is_broken, why in (
            (lambda value: value == 0, "the log is written once a second, so a crash of the server"),
            (
                lambda value: value == 2,
                "the log is flushed once a second, so a crash of the machine or a power cut",
            ),
        )
    ),
    Rule(
        "W005",
        "sync_binlog",
        lambda value: value != 1,
        "There is a binary log and sync_binlog is {value}: after a power cut, recovery undoes what is not in that log"
        f" and {FORGETS}",
        "SET GLOBAL sync_binlog = 1; and the same line in the server's configuration.",
        voids=True,
    ),
    Rule(
        "W006",
        "wsrep_on",
        bool,
        "This is a Galera node: if several nodes are written, one row can be granted on each of them.",
        "Send all writes of leased models to one node (one HOST, no balancing), then silence this check.",
        voids=True,
    ),
    Rule(
        "W009",
        "replicates",
        bool,
        "This server replicates from another one: if leases are decided there, too, one row can be granted twice.",
        "Have DATABASE_ROUTERS and HOST name the same server for every process; on what is only a replica:"
        " SET GLOBAL read_only = 1; If it is the one that is written, silence this check.",
        voids=True,
    ),
    Rule(
        "W012",
        "innodb_lock_wait_timeout",
        lambda seconds: seconds > LONGEST_LOCK_WAIT,
        f"innodb_lock_wait_timeout is {{value}} s: {STUCK}",
        'Set OPTIONS: {"init_command": "SET innodb_lock_wait_timeout = 5"} for this database.',
    ),
    Rule(
        "W026",
        "wait_timeout",
        lambda seconds: seconds > LONGEST_SILENCE,
        "MySQL has no limit for a silent transaction, and wait_timeout is {value} s: so long a host that vanishes"
        " inside guard() keeps its row locked.",
        'Set OPTIONS: {"init_command": "SET wait_timeout = 600"} for this database, and CONN_HEALTH_CHECKS where'
        " connections are kept for longer.",
    ),
)

POSTGRESQL = (
    Rule(
        "W007",
        "synchronous_commit",
        lambda value: value == "off",
        f"synchronous_commit is off: a commit is not on the disk when it returns, so a crash of the server {FORGETS}",
        "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf(); or take it out of OPTIONS.",
        voids=True,
    ),
    *(
        Rule(
            "W008",
            name,
            lambda value: value == "off",
            f"{name} is off: a crash of the machine loses commits or damages the database.",
            f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();",
            voids=True,
        )
        for name in ("fsync", "full_page_writes")
    ),
    Rule(
        "W012",
        "lock_timeout",
        lambda seconds: seconds == 0 or seconds > LONGEST_LOCK_WAIT,
        f"lock_timeout is {{value}} s (0: no end): {STUCK}",
        'Set OPTIONS: {"options": "-c lock_timeout=5s"} for this database.',
    ),
    Rule(
        "W013",
        "DISABLE_SERVER_SIDE_CURSORS",
        bool,
        "DISABLE_SERVER_SIDE_CURSORS suggests a pooler in transaction mode: it hands the session settings of the"
        " background threads on to other clients.",
        "Connect directly, or through a pooler in session mode; then remove DISABLE_SERVER_SIDE_CURSORS.",
    ),
)

SQLITE = (
    Rule(
        "E004",
        "sqlite",
        lambda version: version < (3, 35),
        "SQLite {value} is too old: it has no RETURNING.",
        "Use a Python that brings SQLite 3.35 or newer: python -c 'import sqlite3; print(sqlite3.sqlite_version)'",
    ),
    Rule(
        "W014",
        "transaction_mode",
        lambda mode: mode == "DEFERRED",
        'Transactions that read first and write later fail at once with "database is locked", whatever the timeout.',
        'Set OPTIONS: {"transaction_mode": "IMMEDIATE"} for this database.',
    ),
    Rule(
        "W015",
        "journal_mode",
        lambda mode: mode != "wal",
        "journal_mode is {value}: whoever reads keeps everybody from writing.",
        'Set OPTIONS: {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"} for this database.',
    ),
    Rule(
        "W016",
        "busy_timeout",
        lambda seconds: seconds < SHORTEST_BUSY_TIMEOUT,
        'A statement waits only {value} s for its turn, then fails with "database is locked".',
        'Set OPTIONS: {"timeout": 20} for this database.',
    ),
    Rule(
        "W017",
        "synchronous",
        lambda level: level < 2,
        "synchronous is {value}: a power cut forgets the last commits, and their fences are given out again.",
        'Set OPTIONS: {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"} for this database.',
    ),
    Rule(
        "W018",
        "in_memory",
        bool,
        "The database is in memory: every process has its own, and so every one is granted everything.",
        'Use a file, in tests too: "NAME": BASE_DIR / "db.sqlite3", "TEST": {"NAME": "test.sqlite3"}.',
        voids=True,
    ),
)

RULES = (*EVERYWHERE, *MYSQL, *POSTGRESQL, *SQLITE)

"""The requirements on a database server; ``problem.TEXTS`` gives the reasons."""

from collections.abc import Callable, Mapping, Sequence
from operator import not_
from typing import Any, NamedTuple

from resourcepool.safety.problem import Problem, problem

MAX_LOCK_WAIT = 10  # seconds
MAX_IDLE = 600  # seconds
MIN_BUSY_TIMEOUT = 5  # seconds
PAGE_SIZE = 16_384  # bytes; with smaller pages the entries of an index are shorter
RELAXED = ("read committed", "read uncommitted")


class Rule(NamedTuple):
    """The database server has the problem ``code`` if ``is_broken(facts[fact])``.

    Attributes:
        case: selects the text of the problem; default: the name of the fact.
    """

    code: str
    fact: str
    is_broken: Callable[[Any], bool]
    case: str = ""

    def problem(self, about: str, value: Any) -> Problem:
        """Return the problem for this value."""
        return problem(self.code, about, self.case or self.fact, fact=self.fact, value=_shown(value))


def _words(level: str) -> str:
    return level.lower().replace("-", " ")


def _is_off(value: str) -> bool:
    return value == "off"


def _is_long_idle(seconds: float) -> bool:
    return seconds == 0 or seconds > MAX_IDLE


RULES = (
    Rule("W010", "TEST MIRROR", bool),
    Rule("E007", "read_only", bool),
    Rule("E010", "AUTOCOMMIT", not_),
    Rule("E013", "TIME_ZONE", lambda zone: zone not in ("UTC", "Etc/UTC")),
    Rule("W003", "transaction_isolation", lambda level: _words(level) not in RELAXED),
    # MariaDB and MySQL
    Rule("E004", "mariadb", lambda version: version < (10, 6)),
    Rule("E004", "mysql", lambda version: version < (8, 0, 11)),
    Rule("E005", "counts_matched_rows", not_),
    Rule("E009", "transaction_isolation", lambda level: _words(level) == "read uncommitted"),
    # MariaDB's 3 flushes even more often than 1.
    Rule("W004", "innodb_flush_log_at_trx_commit", lambda value: value == 0),
    Rule("W004", "innodb_flush_log_at_trx_commit", lambda value: value == 2, case="power"),
    Rule("W005", "sync_binlog", lambda value: value != 1),
    Rule("W006", "wsrep_on", bool),
    Rule("W009", "replicates", bool),
    Rule("E018", "character_set_client", lambda name: name != "utf8mb4"),
    Rule("W038", "character_set_database", lambda name: name != "utf8mb4"),
    Rule("W012", "innodb_lock_wait_timeout", lambda seconds: seconds > MAX_LOCK_WAIT),
    Rule("W042", "connect_timeout", not_),
    Rule("W042", "read_timeout", not_),
    Rule("W043", "idle_transaction_timeout", _is_long_idle),
    Rule("W043", "wait_timeout", _is_long_idle),
    # PostgreSQL
    Rule("W042", "tcp_user_timeout", not_),
    Rule("W042", "keepalives_idle", not_),
    Rule("W043", "idle_in_transaction_session_timeout", _is_long_idle),
    Rule("W007", "synchronous_commit", _is_off),
    Rule("W008", "fsync", _is_off),
    Rule("W008", "full_page_writes", _is_off),
    Rule("W038", "server_encoding", lambda name: name != "UTF8"),
    Rule("W012", "lock_timeout", lambda seconds: seconds == 0 or seconds > MAX_LOCK_WAIT),
    Rule("W013", "DISABLE_SERVER_SIDE_CURSORS", bool),
    Rule("W040", "server_processes_shared", bool),
    # SQLite
    Rule("E004", "sqlite", lambda version: version < (3, 35)),
    Rule("W014", "transaction_mode", lambda mode: mode == "DEFERRED"),
    Rule("W015", "journal_mode", lambda mode: mode != "wal"),
    Rule("W016", "busy_timeout", lambda seconds: seconds < MIN_BUSY_TIMEOUT),
    Rule("W017", "synchronous", lambda level: level < 2),
    Rule("W018", "in_memory", bool),
)
# Only checked while tables of this package are missing: existing ones are not affected.
NEW_TABLE_RULES = (
    Rule("E019", "innodb_default_row_format", lambda name: name != "dynamic"),
    Rule("E019", "innodb_page_size", lambda size: size < PAGE_SIZE),
)


def judge(about: str, facts: Mapping[str, Any], rules: Sequence[Rule] = RULES) -> list[Problem]:
    """Return the problems of a database server with these facts."""
    return [rule.problem(about, facts[rule.fact]) for rule in _broken(facts, rules)]


def passed(facts: Mapping[str, Any]) -> list[str]:
    """Return the facts that break no rule, as sentences."""
    broken = {rule.fact for rule in _broken(facts)}
    known = dict.fromkeys(rule.fact for rule in RULES if rule.fact in facts)
    return [f"{fact} is {_shown(facts[fact])}" for fact in known if fact not in broken]


def _broken(facts: Mapping[str, Any], rules: Sequence[Rule] = RULES) -> list[Rule]:
    return [rule for rule in rules if rule.fact in facts and rule.is_broken(facts[rule.fact])]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ".".join(map(str, value))
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return f"{value:g}" if isinstance(value, float) else str(value)

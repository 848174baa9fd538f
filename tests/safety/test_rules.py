"""The rule for each fact about a database server."""

import re
from pathlib import Path
from typing import Any

import pytest

from resourcepool.safety.diagnosis import RULES, judge, passed
from resourcepool.safety.problem import TEXTS, UNSAFE_WARNINGS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("fact", "value", "code"),
    [
        ("mariadb", (10, 5, 9), "E004"),
        ("mariadb", (10, 6, 0), None),
        ("mariadb", (11, 4, 2), None),
        ("mysql", (8, 0, 0), "E004"),
        ("mysql", (8, 4, 3), None),
        ("sqlite", (3, 34, 1), "E004"),
        ("sqlite", (3, 35, 0), None),
        ("counts_matched_rows", False, "E005"),
        ("counts_matched_rows", True, None),
        ("read_only", True, "E007"),
        ("read_only", False, None),
        ("AUTOCOMMIT", False, "E010"),
        ("AUTOCOMMIT", True, None),
        ("TIME_ZONE", "Asia/Shanghai", "E013"),
        ("TIME_ZONE", "UTC", None),
        ("transaction_isolation", "READ-UNCOMMITTED", "E009"),
        ("transaction_isolation", "READ-COMMITTED", None),
        ("transaction_isolation", "read committed", None),
        ("transaction_isolation", "REPEATABLE-READ", "W003"),
        ("transaction_isolation", "serializable", "W003"),
        ("innodb_flush_log_at_trx_commit", 0, "W004"),
        ("innodb_flush_log_at_trx_commit", 1, None),
        ("innodb_flush_log_at_trx_commit", 2, "W004"),
        ("innodb_flush_log_at_trx_commit", 3, None),
        ("character_set_client", "latin1", "E018"),
        ("character_set_client", "utf8mb4", None),
        ("character_set_database", "utf8mb3", "W038"),
        ("character_set_database", "utf8mb4", None),
        ("server_encoding", "LATIN1", "W038"),
        ("server_encoding", "UTF8", None),
        ("sync_binlog", 0, "W005"),
        ("sync_binlog", 1, None),
        ("sync_binlog", 1_000, "W005"),
        ("wsrep_on", True, "W006"),
        ("wsrep_on", False, None),
        ("synchronous_commit", "off", "W007"),
        ("synchronous_commit", "local", None),
        ("synchronous_commit", "on", None),
        ("fsync", "off", "W008"),
        ("fsync", "on", None),
        ("full_page_writes", "off", "W008"),
        ("replicates", True, "W009"),
        ("replicates", False, None),
        ("TEST MIRROR", "default", "W010"),
        ("innodb_lock_wait_timeout", 50, "W012"),
        ("innodb_lock_wait_timeout", 10, None),
        ("lock_timeout", 0, "W012"),
        ("lock_timeout", 0.5, None),
        ("lock_timeout", 60.0, "W012"),
        ("connect_timeout", 0, "W042"),
        ("connect_timeout", 5, None),
        ("read_timeout", 0, "W042"),
        ("read_timeout", 60, None),
        ("tcp_user_timeout", 0, "W042"),
        ("keepalives_idle", 0, "W042"),
        ("keepalives_idle", 10, None),
        ("idle_transaction_timeout", 28_800, "W043"),
        ("idle_transaction_timeout", 60, None),
        ("wait_timeout", 28_800, "W043"),
        ("wait_timeout", 600, None),
        ("idle_in_transaction_session_timeout", 0.0, "W043"),
        ("idle_in_transaction_session_timeout", 60.0, None),
        ("DISABLE_SERVER_SIDE_CURSORS", True, "W013"),
        ("server_processes_shared", True, "W040"),
        ("server_processes_shared", False, None),
        ("transaction_mode", "DEFERRED", "W014"),
        ("transaction_mode", "EXCLUSIVE", None),
        ("journal_mode", "delete", "W015"),
        ("journal_mode", "wal", None),
        ("busy_timeout", 4.9, "W016"),
        ("busy_timeout", 5.0, None),
        ("synchronous", 1, "W017"),
        ("synchronous", 3, None),
        ("in_memory", True, "W018"),
        ("something_else", 7, None),
    ],
)
def test_judgement_of_a_fact(fact: str, value: Any, code: str | None) -> None:
    found = judge("a server", {fact: value})
    assert [finding.code for finding in found] == ([code] if code else [])
    assert bool(passed({fact: value})) == (code is None and fact != "something_else")


def test_a_finding_shows_the_value_in_readable_form() -> None:
    (old,) = judge("a server", {"mariadb": (10, 5, 9)})
    (endless,) = judge("a server", {"lock_timeout": 0})
    assert old.message.startswith("MariaDB 10.5.9 is too old")
    assert endless.message.startswith("lock_timeout is 0 s (0: no limit)")


def test_passed_facts_are_listed_with_their_values() -> None:
    facts = {"mariadb": (11, 4, 2), "wsrep_on": False, "lock_timeout": 2.5, "sync_binlog": 0}
    assert passed(facts) == ["mariadb is 11.4.2", "wsrep_on is OFF", "lock_timeout is 2.5"]


def test_only_lost_or_duplicate_leases_are_unsafe() -> None:
    unsafe = {rule.code for rule in RULES if rule.code.startswith("E") or rule.code in UNSAFE_WARNINGS}
    assert unsafe == {
        "E004",
        "E005",
        "E007",
        "E009",
        "E010",
        "E013",
        "E018",
        *(f"W0{n:02}" for n in (4, 5, 6, 7, 8, 9, 10, 18, 40)),
    }


def test_every_id_is_explained_in_the_docs() -> None:
    code = "".join(file.read_text() for file in (ROOT / "resourcepool").rglob("*.py"))
    used = set(re.findall(r'"(?:resourcepool\.)?([EW]0\d\d)"', code))
    explained = re.findall(
        r"^### ([EW]0\d\d)$", (ROOT / "docs" / "reference" / "checks.md").read_text(), re.MULTILINE
    )
    assert sorted(explained) == sorted(used), "each once"


def test_one_line_fixes_all_sqlite_options() -> None:
    (hint,) = {TEXTS[one].hint for one in ("W014", "W015", "W016", "W017")}
    assert all(
        words in hint for words in ("IMMEDIATE", '"timeout": 20', "journal_mode=WAL", "synchronous=FULL")
    )

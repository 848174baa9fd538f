"""The tests that depend on the database: ``make test`` runs them on every database, and all others on SQLite alone.

Listed, with what differs, is what sends statements of its own, or depends on locks, clocks, sessions or answers of the
server. What works on top of that (handles, loops, arithmetic) behaves the same everywhere and is tested once.

What everything else stands on (guards, tickets, the dialects, plans) is tested on each server each time. What stands on
that (locks, tasks, queues, readings, pages, commands, real processes, many cases that are alike) is tested on one of
the servers each time: which one is drawn for each test by the number of the run, ``TESTS_TURN``, that the header
prints. A run that names its tests tries them all; ``.ci/nightly`` does.
"""

import contextlib
import functools
import re
from collections.abc import Collection
from pathlib import Path
from zlib import crc32

import pytest
from django.db import connection

from tests.case_sample import TURN

# What a mark ``only`` may name, and which databases of ``make test`` that is: MariaDB is a MySQL in Django's eyes.
NAMES = {
    "sqlite": {"sqlite"},
    "mysql": {"mariadb", "mysql"},
    "mariadb": {"mariadb"},
    "oracle_mysql": {"mysql"},
    "postgresql": {"postgresql"},
}
SERVERS = frozenset({"mariadb", "mysql", "postgresql"})
EVERYWHERE = (
    # The verbs, the guard, and replies that were lost
    "tests/leases/test_guard.py",  # row locks of an open transaction
    "tests/leases/test_several_databases.py",  # two connections of one process
    "tests/db/test_skip_locked.py",  # SKIP LOCKED
    "tests/leases/test_unsettled.py",  # replies that are lost on the wire
    "tests/db/test_timeouts.py",  # an answer that does not come
    "tests/db/test_background.py",  # a connection of a thread's own
    "tests/db/test_open_transaction.py",  # what a transaction shows and locks
    "tests/db/dialect",  # the differences themselves
    "tests/locks/test_plans.py",  # EXPLAIN
    "tests/taskqueue/test_plans.py",  # EXPLAIN
    "tests/locks/channels/test_plans.py",  # EXPLAIN
    "tests/taskqueue/dispenser/test_plans.py",  # EXPLAIN
    "tests/encryption/test_field_bound.py::test_values_stored_alike_are_equal",  # types of columns
    # Tickets
    "tests/waiting/test_assignment.py",  # locks and the order of rows
    "tests/waiting/test_handover.py",  # two rows in one transaction
    "tests/waiting/test_handover_locked.py",  # a row that is locked meanwhile
    "tests/waiting/test_handover_lost_replies.py",  # a lost COMMIT
    "tests/waiting/test_poll.py",  # order and locks
    "tests/waiting/test_order.py",  # NULLs, collations, priorities
    "tests/waiting/test_tickets.py",  # each statement on them
    # Pools: statements, choice and what operators change
    "tests/resources/test_vanished_operators.py",  # a session that is silent
    "tests/resources/test_statements.py",  # what a statement costs while others run
    # Queues
    "tests/queues/test_guard.py",  # row locks of an open transaction
    # Readings, the history, periodic work
    "tests/status/test_moments.py",  # what a moment without a zone is
    "tests/status/test_search.py",  # LIKE and numbers out of range
    # Plans, and whether a server is safe
    "tests/checks/test_database.py",  # its version, settings and tables
    "tests/checks/test_unsafe_servers.py",  # servers with unsafe settings
    "tests/safety/test_plans.py",  # EXPLAIN
    # Real processes; how a process ends, and most of what forks and lines do, is the same everywhere
    "tests/concurrency/test_lost_replies.py",  # lost replies
    "tests/concurrency/test_transient.py",  # each server's own errors
)
IN_TURN = (
    # What stands on the rest, and is slow
    "tests/taskqueue/test_sessions.py",  # sessions that end, and transactions that Django does not know of
    "tests/taskqueue/timers/test_sessions.py",  # sessions that end
    "tests/queues/test_reassignment.py",  # one UPDATE for many rows
    "tests/safety/test_measurements.py",  # what is measured on it
    "tests/concurrency/test_crashes.py",  # kills in the middle of statements
    # What builds on leases and tickets: each has statements of its own, put together like theirs
    "tests/locks/test_contract.py",  # claims, hand-overs and row counts of each kind
    "tests/locks/test_lock.py",  # lines, fences and hand-overs of a row whose key is a text
    "tests/locks/test_permits.py",  # several rows in one statement
    "tests/locks/test_semaphore.py",  # row locks, and row counts of each statement
    "tests/locks/test_process_holds.py",  # row counts of a release of several
    "tests/locks/test_rwlock.py",  # several rows in one transaction, locks, and rows that may have to be made first
    "tests/taskqueue/test_consumer.py",  # claims, guards and takeovers in one transaction with the leader's row
    "tests/taskqueue/test_consumer_stopping.py",  # the same
    "tests/taskqueue/timers/test_claims.py",  # locks, and batches in one transaction
    "tests/taskqueue/test_submit.py",  # unique keys in and out of a transaction
    *(f"tests/taskqueue/dispenser/test_{of}.py" for of in ("dispenser", "rebuild")),  # locks, order, row counts
    "tests/contrib/dispenser_parts",  # the same
    "tests/locks/test_condition.py",  # tickets that are locked until a commit, and row counts
    "tests/locks/test_notifying.py",  # the same
    *(
        f"tests/locks/channels/test_{of}.py"
        for of in (
            "done",
            "publishing",
            "publishing_many",
            "removed_meanwhile",
            "subscribing",
            "subscription",
        )
    ),  # row locks, numbers and cursors of each statement
    "tests/queues/test_handover.py",  # fences in UPDATE
    "tests/queues/test_lost_replies.py",  # lost replies
    "tests/queues/test_move_log.py",  # which rows a transaction writes
    "tests/rest/test_request_id.py",  # collations of holders' names; a hand-over to oneself
    "tests/waiting/test_poll_per_name.py",  # hand-overs that choose by the name of a line
    "tests/waiting/test_poll_several.py",  # order and locks
    # The verbs, the guard, and replies that were lost
    # every verb with each of some twenty models: each server has a third of these pairs, so every verb
    "tests/leases/test_contract.py",  # each verb's statement and its row count, for keys that are UUIDs and texts
    "tests/leases/test_contract_in_time.py",  # the server's clock, and its sessions' time zones
    "tests/leases/test_lock_holders.py",  # a lock that somebody else holds
    "tests/leases/test_any_order.py",  # the verbs in every order
    "tests/leases/test_recreated_rows.py",  # the default that the database computes for a new row's fence
    "tests/elections",  # a claim of a row that may have to be made first
    "tests/locks/test_resize.py",  # all rows of a name are locked
    "tests/locks/test_names.py",  # collations and the lengths of columns
    "tests/locks/test_rwlock_any_order.py",  # all calls in every order
    "tests/locks/test_semaphore_any_order.py",  # the same
    "tests/locks/test_rwlock_changing.py",  # several rows in one transaction, and rows that are taken back
    "tests/locks/test_rwlock_order.py",  # the order of the line, and of the rows
    "tests/locks/test_rwlock_revoked.py",  # hand-overs to one ticket for several rows
    "tests/taskqueue/test_task_time.py",  # in which zone a column's moments are
    "tests/taskqueue/test_history.py",  # reads and changes rows that others change meanwhile
    "tests/taskqueue/timers/test_history.py",  # reads and changes rows that others change meanwhile
    "tests/taskqueue/timers/test_operators.py",  # updates that compute one column from another
    "tests/taskqueue/timers/test_processes.py",  # what a dead session leaves
    *(
        f"tests/taskqueue/timers/test_runner{of}.py" for of in ("", "_lost", "_stopping")
    ),  # claims and ends while others have rows locked
    "tests/taskqueue/timers/test_time_zones.py",  # what a moment without a zone is
    "tests/taskqueue/timers/test_scheduling.py",  # unique names, moments and row counts
    "tests/taskqueue/dispenser/surroundings",  # isolation, transactions, sessions that die or stand still
    "tests/taskqueue/dispenser/test_interleavings.py",  # row locks
    "tests/taskqueue/dispenser/test_operators.py",  # row counts of each statement
    *(
        f"tests/locks/channels/test_{of}.py"
        for of in ("any_order", "interrupted_anywhere", "operators", "processes")
    ),  # every statement in every order, and what dead sessions leave
    "tests/locks/test_barrier.py",  # a row that is locked while it is removed
    "tests/locks/test_condition_any_order.py",  # every statement in every order
    "tests/locks/test_condition_sessions.py",  # how many sessions are used
    "tests/encryption/test_field_bound.py::test_a_copy_in_another_row_is_unreadable_however_it_was_stored",  # types
    # Tickets
    "tests/waiting/test_acquire.py",  # which statements a caller sends
    "tests/waiting/test_login_away.py",  # what each server says of a refused login
    "tests/waiting/test_sessions.py",  # how many sessions are used
    # Pools: statements, choice and what operators change
    "tests/resources/test_any_order.py",  # all calls of a pool in every order
    "tests/resources/test_registry.py",  # ORDER BY, LIMIT and random numbers
    "tests/resources/test_locked_rows.py",  # locks that operators meet
    "tests/resources/test_operating.py",  # updates that compute one column from another
    "tests/resources/test_outages.py",  # what each driver says of a server that is away
    "tests/resources/test_pool.py",  # row counts of each call
    "tests/resources/test_pool_adopt.py",  # row counts of each call
    "tests/resources/test_pool_statements.py",  # which statements there are
    "tests/resources/test_selectors.py",  # JSON, collations and types in WHERE
    "tests/resources/test_service.py",  # updates beside a running lease
    "tests/resources/test_source.py",  # ORDER BY
    "tests/proxies/test_import_proxies.py",  # inserts that may conflict
    # Queues
    "tests/queues/test_any_order.py",  # all that servers do, in every order
    "tests/queues/test_locked_rows.py",  # locks
    "tests/queues/test_postponed_plans.py",  # locks
    "tests/queues/test_planning_transactions.py",  # many who plan at once
    "tests/queues/serving/test_membership.py",  # joining and renewing
    "tests/queues/serving/test_membership_presumed_dead.py",  # joining again
    "tests/queues/serving/test_snapshot.py",  # one read of everything
    # Readings, the history, periodic work
    "tests/status/locks",  # aggregates, windows, EXPLAIN
    "tests/status/test_databases.py",  # its own SQL
    "tests/status/test_finding.py",  # any text, numbers out of range
    "tests/status/test_grid.py",  # aggregates
    "tests/status/test_pools.py",  # aggregates
    "tests/status/work/test_timers.py",  # aggregates, moments of the server
    "tests/status/test_trend.py",  # moments that are grouped
    "tests/status/test_waiting.py",  # aggregates, moments of the server
    "tests/status/test_snoozes.py",  # moments of the server, any text
    "tests/status/test_why.py",  # moments of the server
    "tests/management/test_work_lists.py",  # moments of the server, collations in pages
    "tests/status/queues/test_stuck.py",  # intervals
    "tests/status/queues/test_queue_groups.py",  # aggregates
    "tests/history/test_locks.py::TestStatus",  # aggregates, moments of the server
    "tests/history/test_recorder.py",  # inserts by a thread of its own
    "tests/sweeps/test_gone_servers.py",  # locks
    "tests/sweeps/test_locked_rows.py",  # locks
    "tests/sweeps/test_sweep.py",  # deletes in batches
    "tests/jobs",  # elections of periodic work
    # Every page and every command sends its statements once; what lists find, and what they cost
    "tests/canary/test_commands.py::test_it_shows_none",  # each command
    "tests/canary/test_pages.py::test_a_page_shows_none",  # each page
    "tests/admin/test_lists.py::test_a_search_with_too_many_words_finds_nothing",  # limits of a statement
    "tests/admin/test_query_counts.py",  # prefetching and counts
    "tests/admin/test_lists.py::test_the_filter_by_state_agrees_with_the_states",  # moments of the server
    "tests/admin/test_lists.py::test_filters_and_search",  # LIKE, JSON, collations
    "tests/admin/test_locked_rows.py",  # locks
    "tests/admin/test_records.py::test_an_impossible_key_is_not_found",  # numbers out of range
    "tests/admin/test_records.py::test_what_the_filters_find",  # JSON and moments
    "tests/admin/queues/test_lists.py::test_what_the_filters_find",  # moments of the server
    "tests/management/test_locked_rows.py",  # locks
    "tests/management/test_resourcepool_doctor.py",  # what it says of each server
    "tests/management/test_unmigrated.py",  # how each says that a table is missing
    # Real processes; how a process ends, and most of what forks and lines do, is the same everywhere
    # a driver's session in a child:
    "tests/concurrency/test_forks.py::test_the_parents_connection_and_lease_outlive_a_child_that_used_the_database",
    "tests/concurrency/test_frozen_server.py",  # a server that hangs
    # tickets that run out:
    "tests/concurrency/test_line.py::test_six_processes_are_served_in_order_without_a_killed_one",
    # tickets that run out:
    "tests/concurrency/test_line.py::test_a_caller_that_does_not_wait_never_overtakes",  # isolation
    "tests/rest/test_inputs.py::test_nothing_has_a_name_with_nul",  # what text a server does not take
    "tests/rest/test_inputs.py::test_a_parameter_with_nul_is_refused",  # the same
    "tests/rest/test_inputs.py::test_a_user_name_with_nul_is_nobodys",  # the same
    "tests/rest/test_inputs.py::test_a_session_key_with_nul_is_nobodys",  # the same
    "tests/rest/test_leases.py",  # row counts of each call
    "tests/rest/test_where.py",  # what each database takes for equal JSON
    "tests/rest/test_processes.py",  # mutual exclusion
    "tests/concurrency/test_vanished_host.py",  # a host that is gone without a word
)
# Of these, in IN_TURN too, there are very many that are alike: a server tests every sixth each time, not every third.
SELDOM = (
    "tests/canary/test_pages.py::test_a_page_shows_none",
    "tests/queues/test_any_order.py",
    "tests/resources/test_locked_rows.py::TestOfMany::test_all_others_are_done_and_it_says_so",
)
# What a file looks like that has tests for servers: the mark, or a name that stands for it (tests/queues/members.py).
MENTION = re.compile(r'only\("(?:mysql|mariadb|oracle_mysql|postgresql)"|has_a_server')


@functools.cache
def targets() -> tuple[str, ...]:
    """Return the paths in which every test marked ``everywhere`` is: the listed, and files with tests for servers."""
    listed = (*EVERYWHERE, *IN_TURN)
    folders = [Path(entry) for entry in listed if "::" not in entry]
    files = (file for file in sorted(Path("tests").rglob("test_*.py")) if MENTION.search(file.read_text()))
    return (*listed, *(str(file) for file in files if not {file, *file.parents}.intersection(folders)))


@functools.cache
def files_alone() -> tuple[str, ...]:
    """Return the files with tests marked ``alone``."""
    files = sorted(Path("tests").rglob("test_*.py"))
    return tuple(str(file) for file in files if "mark.alone" in file.read_text())


@functools.cache
def here() -> str:
    """Return the name of the database that these tests run on, as ``make test`` has it."""
    if connection.vendor != "mysql":
        return connection.vendor
    # By a session of its own: when tests are collected Django's may not be used.
    params = connection.get_connection_params()
    with contextlib.closing(connection.get_new_connection(params)) as session:
        return "mariadb" if "MariaDB" in session.get_server_info() else "mysql"


def databases(item: pytest.Item) -> frozenset[str]:
    """Return which databases this test is for, by all its marks ``only``; empty: every one."""
    marks = [
        frozenset(name for word in mark.args for name in NAMES[word]) for mark in item.iter_markers("only")
    ]
    return frozenset.intersection(*marks) if marks else frozenset()


def is_everywhere(item: pytest.Item) -> bool:
    """Whether ``make test`` runs this test on servers, too: it depends on the database, or is for servers alone.

    On a server only if it is this server's turn.
    """
    wanted = databases(item)
    if _is_within(item.nodeid, IN_TURN) and len(wanted & SERVERS) != 1:
        return has_its_turn(item.nodeid, here(), TURN, wanted & SERVERS or SERVERS)
    return bool(wanted and wanted <= SERVERS) or _is_within(item.nodeid, EVERYWHERE + IN_TURN)


def has_its_turn(nodeid: str, name: str, turn: int | None, servers: Collection[str] = SERVERS) -> bool:
    """Whether this run tests it on this server: each is tested on one of ``servers``; on all if no turn was drawn.

    Of what is in SELDOM, a half is tested on none.
    """
    whose = [*sorted(servers), *([""] * len(servers) if _is_within(nodeid, SELDOM) else [])]
    return turn is None or name == whose[crc32(f"{turn} {nodeid}".encode()) % len(whose)]


def is_never_run(item: pytest.Item) -> bool:
    """Whether this is a test for servers that ``make test`` does not find."""
    wanted = databases(item)
    return bool(wanted and wanted <= SERVERS) and not _is_within(item.nodeid, targets())


def _is_within(nodeid: str, entries: tuple[str, ...]) -> bool:
    path, *_ = nodeid.split("::", 1)
    return any(
        nodeid == entry or nodeid.startswith((f"{entry}/", f"{entry}::", f"{entry}["))
        for entry in _near(path, entries)
    )


@functools.cache
def _near(path: str, entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return the entries that are in this file, or have it in them: ten thousand tests are in some hundred files."""
    return tuple(entry for entry in entries if path.startswith(entry) or entry.startswith(path))

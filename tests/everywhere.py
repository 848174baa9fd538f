"""The tests that depend on the database: ``make test`` runs them on every one, and all others on SQLite alone.

Listed is what sends statements of its own, or depends on locks, clocks, sessions or answers of the server. What works
on top of that (handles, loops, pages, commands, arithmetic) behaves the same everywhere and is tested once.
"""

import functools
import re
from pathlib import Path

import pytest

SERVERS = frozenset({"mysql", "postgresql"})
EVERYWHERE = (
    # The verbs, the guard, and replies that were lost
    "tests/leases/test_any_order.py",
    "tests/leases/test_contract.py",
    "tests/leases/test_contract_in_time.py",
    "tests/leases/test_guard.py",
    "tests/leases/test_lock_holders.py",
    "tests/leases/test_made_again.py",
    "tests/leases/test_several_databases.py",
    "tests/leases/test_silence.py",
    "tests/leases/test_skip_locked.py",
    "tests/leases/test_unsettled.py",
    "tests/database/test_answers.py",
    "tests/database/test_background.py",
    "tests/database/test_open_transaction.py",
    "tests/dialect",
    "tests/encryption/test_field_bound.py::test_however_it_was_stored_it_is_nothing_to_another_row",
    "tests/encryption/test_field_bound.py::test_what_the_database_stores_alike_is_alike",
    # Tickets
    "tests/waiting/test_acquire.py",
    "tests/waiting/test_giving_out.py",
    "tests/waiting/test_handover.py",
    "tests/waiting/test_handover_locked.py",
    "tests/waiting/test_handover_lost_replies.py",
    "tests/waiting/test_large_tickets.py",
    "tests/waiting/test_line.py",
    "tests/waiting/test_line_several.py",
    "tests/waiting/test_order.py",
    "tests/waiting/test_sessions.py",
    "tests/waiting/test_tickets.py",
    # Pools: statements, choice and what operators change
    "tests/resources/test_any_order.py",
    "tests/resources/test_registry.py",
    "tests/resources/test_document_000.py",
    "tests/resources/test_locked_rows.py",
    "tests/resources/test_operating.py",
    "tests/resources/test_outages.py",
    "tests/resources/test_pool.py",
    "tests/resources/test_pool_adopt.py",
    "tests/resources/test_pool_statements.py",
    "tests/resources/test_selectors.py",
    "tests/resources/test_service.py",
    "tests/resources/test_silent_operators.py",
    "tests/resources/test_statements.py",
    "tests/resources/test_strategy.py",
    "tests/proxies/test_importing.py",
    # Queues
    "tests/queues/test_any_order.py",
    "tests/queues/test_guard.py",
    "tests/queues/test_handing_over.py",
    "tests/queues/test_locked_rows.py",
    "tests/queues/test_lost_replies.py",
    "tests/queues/test_move_log.py",
    "tests/queues/test_moving.py",
    "tests/queues/test_operating.py",
    "tests/queues/test_outages.py",
    "tests/queues/test_reassigning.py",
    "tests/queues/serving/test_membership.py",
    "tests/queues/serving/test_membership_judged_dead.py",
    "tests/queues/serving/test_snapshot.py",
    # Readings, the history, periodic work
    "tests/status/test_collations.py",
    "tests/status/test_grid.py",
    "tests/status/test_pools.py",
    "tests/status/test_search.py",
    "tests/status/test_trend.py",
    "tests/status/test_waiting.py",
    "tests/status/test_why.py",
    "tests/status/queues/test_stuck.py",
    "tests/status/queues/test_task_types.py",
    "tests/history/test_recorder.py",
    "tests/elections",
    "tests/jobs",
    "tests/sweeps/test_locked_rows.py",
    "tests/sweeps/test_sweep.py",
    "tests/validity/test_check.py",
    # Plans, and whether a server is safe
    "tests/checks/test_database.py",
    "tests/checks/test_unsafe_servers.py",
    "tests/safety/test_measuring.py",
    "tests/safety/test_plans.py",
    # Every page and every command; what lists find, and what they cost
    "tests/canary/test_commands.py::test_it_shows_none",
    "tests/canary/test_pages.py::test_a_page_shows_none",
    "tests/admin/test_lists.py::test_at_most_ten_queries_however_many_rows",
    "tests/admin/test_lists.py::test_more_words_than_a_database_compares_at_once_find_nothing",
    "tests/admin/test_lists.py::test_no_query_counts_the_table",
    "tests/admin/test_lists.py::test_the_filter_by_state_agrees_with_the_states",
    "tests/admin/test_lists.py::test_what_the_filters_and_the_search_find",
    "tests/admin/test_locked_rows.py",
    "tests/admin/test_records.py::test_a_key_that_no_database_can_hold_is_not_there",
    "tests/admin/test_records.py::test_what_the_filters_find",
    "tests/admin/queues/test_lists.py::test_what_the_filters_find",
    "tests/management/test_locked_rows.py",
    "tests/management/test_resourcepool_doctor.py",
    "tests/management/test_unmigrated.py",
    # Real processes
    "tests/concurrency/test_clean_up.py",
    "tests/concurrency/test_counter.py",
    "tests/concurrency/test_crashes.py",
    "tests/concurrency/test_endings.py",
    "tests/concurrency/test_forks.py",
    "tests/concurrency/test_frozen_server.py",
    "tests/concurrency/test_line.py",
    "tests/concurrency/test_lost_replies.py",
    "tests/concurrency/test_many.py",
    "tests/concurrency/test_pauses.py",
    "tests/concurrency/test_queues_outage.py",
    "tests/concurrency/test_restarts.py",
    "tests/concurrency/test_threads.py",
    "tests/concurrency/test_transient.py",
    "tests/concurrency/test_vanished_host.py",
)
# What a file looks like that has tests for servers: the mark, or a name that stands for it (tests/queues/crew.py).
MENTION = re.compile(r'only\("(?:mysql|postgresql)"|has_a_server')


@functools.cache
def targets() -> tuple[str, ...]:
    """Return the paths in which every test marked ``everywhere`` is: EVERYWHERE, and files with tests for servers."""
    folders = [Path(entry) for entry in EVERYWHERE if "::" not in entry]
    files = (file for file in sorted(Path("tests").rglob("test_*.py")) if MENTION.search(file.read_text()))
    return (*EVERYWHERE, *(str(file) for file in files if not {file, *file.parents}.intersection(folders)))


def vendors(item: pytest.Item) -> frozenset[str]:
    """Return which databases this test is for, by its marks ``only``; empty: every one."""
    return frozenset(name for mark in item.iter_markers("only") for name in mark.args)


def is_everywhere(item: pytest.Item) -> bool:
    """Whether ``make test`` runs this test on servers, too: it depends on the database, or is for servers alone."""
    wanted = vendors(item)
    return bool(wanted and wanted <= SERVERS) or _is_within(item.nodeid, EVERYWHERE)


def is_never_run(item: pytest.Item) -> bool:
    """Whether this is a test for servers that ``make test`` does not find."""
    wanted = vendors(item)
    return bool(wanted and wanted <= SERVERS) and not _is_within(item.nodeid, targets())


def _is_within(nodeid: str, entries: tuple[str, ...]) -> bool:
    return any(
        nodeid == entry or nodeid.startswith((f"{entry}/", f"{entry}::", f"{entry}[")) for entry in entries
    )

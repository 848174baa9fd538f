"""Samples of long lists of cases: ``make test`` tries some, another part each time; the long form tries all.

In a run of everything (``TESTS_EVERY``, ``TESTS_TURN``: see tests/run.py) it is a smaller part than where the tests
are named.
"""

import itertools
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar
from zlib import crc32

from hypothesis import settings

EVERY = int(os.environ.get("TESTS_EVERY", "1"))  # of very many alike, such as lines to be interrupted at
EACH = 4 * EVERY
TURN = int(os.environ["TESTS_TURN"]) if "TESTS_TURN" in os.environ else None  # drawn for a run of everything
T = TypeVar("T")


# Tests that are alike, or the same thing shown once more by real processes: of these, a run of everything has one in so
# many on SQLite (on MariaDB of those marked ``alone``), the next one the next time. None of them asks who may do what,
# or whether a secret is kept.
IN_PART = {
    "tests/benchmarks/test_peers.py::test_a_quick_measurement_of_a_peer_has_every_figure": 2,
    "tests/benchmarks/test_quick.py": 2,
    "tests/browser/test_clicks.py": 2,
    "tests/browser/test_dashboard.py": 2,
    "tests/browser/test_lists.py": 2,
    "tests/browser/test_problems.py": 3,
    "tests/browser/test_room.py": 2,
    "tests/demo": 4,
    "tests/docs/test_pages.py::test_a_reader_gets_there_from_an_empty_folder": 4,
    "tests/docs/test_pages.py::test_every_block_of_a_page_runs": 8,
    "tests/operations/test_every_surface.py::test_it_says_and_records_what_it_did": 3,
    "tests/leases/test_contract.py": 3,
    "tests/leases/test_contract_in_time.py": 3,
    "tests/leases/test_recreated_rows.py": 3,
    "tests/locks/channels/test_processes.py": 2,
    "tests/locks/test_classic.py": 2,
    "tests/taskqueue/test_crashes.py": 3,
    "tests/taskqueue/timers/test_processes.py": 2,
    "tests/admin/test_base.py::test_a_list_accepts_only_columns_compared_for_equality": 3,
    "tests/admin/test_lists.py::test_filters_and_search": 2,
    "tests/admin/test_form_like_import.py::test_form_and_import_accept_the_same_values": 3,
    "tests/admin/test_records.py::test_what_the_filters_find": 2,
    "tests/admin/test_hostile_input.py::test_no_file_breaks_the_import": 3,
    "tests/admin/test_hostile_input.py::test_no_key_in_a_url_breaks_a_page": 3,
    "tests/admin/test_hostile_input.py::test_no_input_breaks_a_page": 3,
    "tests/admin/queues/test_lists.py::test_what_the_filters_find": 2,
    "tests/hints/test_contract.py": 2,
    "tests/hints/test_processes.py": 2,
    "tests/locale/test_pages.py::test_a_page_speaks_the_language_of_the_browser": 3,
    "tests/locale/test_systems.py::test_a_page_is_in_chinese": 3,
    "tests/locale/test_systems.py::test_the_command_speaks_chinese": 3,
    "tests/locale/test_systems.py::test_what_came_of_it_is_said_in_chinese": 3,
    "tests/locks/test_cpython.py::test_it_does_what_cpython_expects": 2,
    "tests/locks/test_forgotten.py::test_what_an_interrupted_caller_has_not_got_is_let_go": 2,
    "tests/locks/test_signals.py::test_a_signal_that_does_not_wake_who_waits_ends_the_wait_soon": 3,
    "tests/locks/test_signals.py::test_who_ends_in_order_leaves_nothing": 3,
    "tests/management/test_resourcepool_locks.py::test_what_cannot_be_done_is_refused": 3,
    "tests/management/test_resourcepool_queues.py::test_bad_input_is_one_sentence_and_changes_nothing": 3,
    "tests/management/test_base.py::TestAsAProgram": 2,
    "tests/management/test_first_process.py": 2,
    "tests/management/test_terminal.py::test_words_that_are_not_understood_are_said_without_them": 2,
    "tests/management/test_unmigrated.py::test_a_command_says_so": 3,
    "tests/proof": 3,
    "tests/queues/test_outages.py::test_all_that_come_back_go_on_with_what_they_had": 2,
    "tests/resources/test_interrupted_anywhere.py": 2,
    "tests/rest/test_processes.py": 2,
    "tests/taskqueue/test_celery_beat.py": 2,
    "tests/contrib/celery_timers/test_celery_cut_off.py": 2,
    "tests/contrib/celery_timers/test_celery_worker.py": 2,
    "tests/taskqueue/timers/test_faults.py::test_of_a_change_and_the_handler_exactly_one_wins": 3,
}


def has_its_turn(nodeid: str, one_in: int) -> bool:
    """Whether this one of ``one_in`` is tried in the run of this number; each is if no number was drawn."""
    return TURN is None or (crc32(nodeid.encode()) + TURN) % one_in == 0


def left_out(nodeids: Iterable[str], turn: int) -> set[str]:
    """Return which tests that one of IN_PART names are left out in the run of this number, whichever others it has."""
    found = set()
    for nodeid in nodeids:
        path, _, name = nodeid.partition("::")
        for entry in (path.rsplit("/", 1)[0], path, f"{path}::{name.split('::')[0].split('[')[0]}"):
            if (crc32(nodeid.encode()) + turn) % IN_PART.get(entry, 1):
                found.add(nodeid)
    return found


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield, again and again, another part of ``values``; so that several things tried see all of them together."""
    if settings.get_current_profile_name() == "long":
        return itertools.repeat(values)
    first = (secrets.randbelow(EACH) if TURN is None else TURN) % EACH
    return itertools.cycle([values[(first + share) % EACH :: EACH] for share in range(EACH)])

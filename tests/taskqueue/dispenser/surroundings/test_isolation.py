"""A project that has chosen REPEATABLE READ: races end as they do at READ COMMITTED."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.test import override_settings

from resourcepool.contrib.dispenser_parts import TaskPool
from resourcepool.db.transactions import short_transaction
from resourcepool.taskqueue import Done, TaskDispenser
from tests.aliases import alias
from tests.eventually import InBackground
from tests.queues.test_planning_transactions import repeatable_read
from tests.taskqueue.dispenser.dispensers import dispenser, letters, run_out, states
from tests.taskqueue.dispenser.test_dispenser import (  # noqa: F401 (once more, in this isolation)
    test_a_bucket_expires_as_a_whole_and_its_tasks_return_at_once,
    test_a_task_is_done_once_and_saying_so_again_is_the_same,
    test_many_at_once_get_different_tasks,
    test_tasks_that_expired_too_often_leave_the_pool_with_a_reason,
)
from tests.taskqueue.dispenser.test_interleavings import (  # noqa: F401
    test_a_a_rebuild_leaves_alone_what_is_assigned_after_it_has_looked,
    test_b_what_a_process_was_taking_when_it_died_is_in_the_pool,
    test_c_a_bucket_that_expires_while_it_is_filled_is_a_new_one,
    test_e_many_assignments_of_one_worker_overfill_nothing,
    test_e_one_that_comes_in_between_waits_or_is_counted,
    test_g_what_is_done_while_a_bucket_is_trimmed_does_not_go_back,
    test_g_what_was_trimmed_is_not_done_and_waits_at_once,
)
from tests.taskqueue.dispenser.test_rebuild import (  # noqa: F401
    test_rebuilds_and_assignments_at_once_dispense_nothing_twice,
    test_what_finished_before_the_mapping_was_computed_is_new_work,
    test_what_is_missing_goes_what_is_new_comes_and_scores_change,
)

pytestmark = pytest.mark.only("mysql", "postgresql")
STRANGE = "strange"


class Everything:
    """A router that sends all models there."""

    def db_for_read(self, model: type, **hints: Any) -> str:
        return STRANGE

    db_for_write = db_for_read


@pytest.fixture(autouse=True)
def _at_repeatable_read(_on_committed_rows: None) -> Iterator[None]:
    options = {"isolation_level": repeatable_read()}
    with alias(STRANGE, leased=False, OPTIONS=options), override_settings(DATABASE_ROUTERS=[Everything()]):
        yield


def test_it_is_the_isolation_that_is_tested() -> None:
    on_mysql = "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')"
    asks = on_mysql if connection.vendor == "mysql" else "SHOW transaction_isolation"
    with transaction.atomic(using=STRANGE), connections[STRANGE].cursor() as cursor:
        cursor.execute(asks)
        assert cursor.fetchone()[-1].lower().replace("-", " ") == "repeatable read"


@pytest.mark.only("postgresql")
def test_a_transaction_of_this_package_is_at_read_committed_and_the_next_one_as_the_project_says() -> None:
    found = []
    for begin in (lambda: short_transaction(connections[STRANGE]), lambda: transaction.atomic(using=STRANGE)):
        with begin(), connections[STRANGE].cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            found.append(cursor.fetchone()[0])
    assert found == ["read committed", "repeatable read"]


def test_what_is_done_in_a_transaction_that_sees_an_older_moment_is_judged_by_what_is_so_now() -> None:
    d = dispenser(letters("ab"))
    late = d.assign_tasks(1, "alice")

    def meanwhile() -> None:
        run_out("alice")
        TaskDispenser("reviews").assign_tasks(1, "bob")

    refuses = pytest.raises(OperationalError) if connection.vendor == "postgresql" else contextlib.nullcontext()
    with refuses, transaction.atomic(using=STRANGE):
        assert states() == {"a": "assigned", "b": "ready"}  # its moment
        InBackground(meanwhile).result(30)
        assert d.tasks_done("alice", late) == {"a": Done.STALE}
    assert states() == {"a": "assigned", "b": "ready"}


@pytest.mark.only("mysql")  # PostgreSQL refuses rows changed since the transaction began
def test_clearing_ends_in_a_transaction_that_sees_what_others_have_taken_since() -> None:
    d = dispenser({number: number for number in range(1_300)})

    def meanwhile() -> int:
        return len(TaskPool("reviews").assign(1_000))

    with transaction.atomic(using=STRANGE):
        assert d.size() == 1_300  # its moment
        assert InBackground(meanwhile).result(30) == 1_000
        assert d.clear() == 300
    assert states() == {}

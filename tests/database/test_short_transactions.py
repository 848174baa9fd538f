"""Changes that wait only briefly for a lock."""

from typing import NoReturn

import pytest
from django.db import OperationalError, transaction

from resourcepool.database.short_transactions import run_short_transaction
from resourcepool.exceptions import DatabaseUnavailable


def locked() -> NoReturn:
    raise OperationalError(1205, "Lock wait timeout exceeded; try restarting transaction")


@pytest.mark.only("mysql")
def test_a_locked_row_is_refused_with_a_sentence() -> None:
    with pytest.raises(DatabaseUnavailable, match="locked by another transaction"):
        run_short_transaction("default", locked)


@pytest.mark.only("mysql")
def test_inside_a_transaction_the_error_is_left_to_whoever_began_it() -> None:
    with pytest.raises(OperationalError), transaction.atomic():
        run_short_transaction("default", locked)

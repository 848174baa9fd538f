"""A signal handler raises during a statement, so the driver cannot end the transaction normally."""

import contextlib

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError, connection

from resourcepool.db.retry import retrying

ENDS = [KeyboardInterrupt, SystemExit]


@pytest.mark.parametrize("raised", [*ENDS, TimeoutError])
@pytest.mark.parametrize("of_driver", [ProgrammingError, OperationalError])
def test_what_it_raises_is_not_replaced_and_nothing_is_sent_again(
    raised: type[BaseException], of_driver: type[Exception]
) -> None:
    sent = []

    def send() -> None:
        sent.append(1)
        try:
            raise raised
        finally:  # as Django does after a COMMIT that was begun
            raise of_driver("can't change 'autocommit' now: connection in transaction status ACTIVE")

    with pytest.raises(raised):
        retrying(connection, send)
    assert len(sent) == 1


@pytest.mark.parametrize("raised", ENDS)
def test_what_is_handled_already_ends_no_other_statement(raised: type[BaseException]) -> None:
    sent = []

    def send() -> None:
        sent.append(1)
        if len(sent) == 1:
            raise InterfaceError(0, "database is locked")  # each driver understands it

    with contextlib.suppress(raised):
        try:
            raise raised
        finally:
            retrying(connection, send, settle=send)
    assert len(sent) == 2


def test_an_error_of_the_driver_is_not_hidden_by_one_that_it_came_of() -> None:
    def send() -> None:
        try:
            raise TimeoutError
        finally:
            raise ProgrammingError("wrong")

    with pytest.raises(ProgrammingError, match="wrong"):
        retrying(connection, send)

"""Noting the numbers of the tickets that a process takes."""

import sys
from types import SimpleNamespace

import pytest

from benchmarks.numbers import TicketNumbers


def test_a_second_ticket_of_the_same_wait_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    coming = iter([7, 9, 12])
    tickets = SimpleNamespace(take=lambda connection, request: SimpleNamespace(pk=next(coming)))
    monkeypatch.setitem(sys.modules, "resourcepool.waiting", SimpleNamespace(tickets=tickets))
    numbers = TicketNumbers()
    assert numbers.pop() == []
    assert [tickets.take("a connection", "a request").pk for _ in range(2)] == [7, 9]
    assert numbers.pop() == [7]
    tickets.take("a connection", request="a request")
    assert numbers.pop() == [12]

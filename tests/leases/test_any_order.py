"""In any order of calls, a row behaves like this model of it."""

from typing import Any

import pytest
from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from resourcepool.leases import verbs
from resourcepool.models import Proxy
from tests.app.models import Bare, Device
from tests.app.rows import busy_for, claim, columns, expire, new
from tests.state_machines import check

TTL = 1_000.0


class ARow(RuleBasedStateMachine):
    """The row in the database, and what it should be: its fence, whether it is busy, and who has it.

    Any fence that was ever granted may be tried at any time: each stands for a holder that is late.
    """

    model: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.row = new(self.model)
        self.fence, self.is_busy, self.holder = 0, False, ""
        self.fences = [0]

    @rule(name=st.sampled_from(["ann", "bob", "ann's twin"]))
    def claim(self, name: str) -> None:
        grant = claim(self.row, name, TTL)
        if self.is_busy:
            assert grant is None
        else:
            assert grant is not None
            self._granted(name)
            assert grant.fence == self.fence

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        fence = data.draw(st.sampled_from(self.fences))
        renewed = verbs.renew(connection, self.model, [(self.row.pk, fence)], TTL)
        assert renewed == (self.is_busy and fence == self.fence)

    @rule(data=st.data(), cooldown=st.sampled_from([0.0, TTL]))
    def release(self, data: st.DataObject, cooldown: float) -> None:
        fence = data.draw(st.sampled_from(self.fences))
        released = verbs.release(connection, self.model, self.row.pk, fence, cooldown)
        assert released == (fence == self.fence)
        if released:
            self._granted("")
            self.is_busy = cooldown > 0

    @rule(data=st.data())
    def hand_over(self, data: st.DataObject) -> None:
        fence = data.draw(st.sampled_from(self.fences))
        done = verbs.hand_over(connection, self.model, self.row.pk, fence, to="heir", ttl=TTL)
        assert done == (fence + 1 if fence == self.fence else 0)
        if done:
            self._granted("heir")

    @rule()
    @precondition(lambda self: self.is_busy)
    def time_passes(self) -> None:
        expire(self.row)
        self.is_busy = False

    @invariant()
    def the_row_is_as_it_should_be(self) -> None:
        now = columns(self.row)
        assert (now["fence"], now["holder"]) == (self.fence, self.holder)
        assert (busy_for(self.row) > 0) == self.is_busy

    def teardown(self) -> None:
        self.model._base_manager.filter(pk=self.row.pk)._raw_delete("default")

    def _granted(self, holder: str) -> None:
        self.fence, self.is_busy, self.holder = self.fence + 1, True, holder
        self.fences.append(self.fence)


@pytest.fixture(params=[Bare, Device, Proxy], ids=lambda model: model._meta.label)
def machine(request: pytest.FixtureRequest) -> type[ARow]:
    return type("ARow", (ARow,), {"model": request.param})


@pytest.mark.timeout(1_200)  # the long form takes minutes
def test_a_row_is_never_anything_else(machine: type[ARow]) -> None:
    check(machine)

"""Elections: one leader, visible to all processes, and its successor."""

import asyncio
import math
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.elections import Election, Leader, Term
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost
from resourcepool.models import Job, Ticket
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.pacing import pacing_of
from tests.app.rows import change, steal
from tests.eventually import InBackground, eventually


def row() -> ElectionRow:
    return ElectionRow.objects.get()


def test_one_leads_until_it_resigns() -> None:
    term = Election("reports").campaign()
    assert term.is_leader
    assert InBackground(Election("reports").try_now).result() is None
    with pytest.raises(AcquireTimeout, match="election 'reports' was not won within 0 s"):
        InBackground(lambda: Election("reports").campaign(timeout=0)).result()
    term.resign()
    assert not term.is_leader
    with Election("reports").campaign() as second:
        assert second.fence > term.fence
    assert not second.is_leader


def test_elections_of_different_names_and_models_have_leaders_of_their_own() -> None:
    with Election("a").campaign(), Election("b").campaign(), Election("a", Job).campaign() as third:
        assert third.is_leader
        assert Job.objects.get().pk == "a"


def test_anybody_can_see_who_leads_in_which_term_and_since_when() -> None:
    election = Election("reports")
    assert election.leader() is None
    with election.campaign() as term:
        leader = Election("reports").leader()
        assert leader is not None
        assert (leader.holder, leader.term) == (term.holder, term.fence)
        assert leader.since is not None
        assert leader.since < 30
    assert election.leader() is None


def test_a_term_that_has_just_begun_does_not_borrow_the_beginning_of_the_last_one() -> None:
    Election("reports").campaign().resign()
    steal(row(), holder="the next one")
    assert Election("reports").leader() == Leader("the next one", row().fence, None)


def test_whoever_waits_follows_at_once_when_the_leader_resigns() -> None:
    first = Election("reports").campaign()
    waiting = InBackground(lambda: Election("reports").campaign(timeout=60).fence)
    eventually(Ticket.objects.exists)
    Election("another").campaign().resign()  # another election
    assert Ticket.objects.filter(is_waiting=True).exists()
    first.resign()
    assert waiting.result() == first.fence + 1


def test_the_row_is_added_for_a_campaign_that_begins_in_line() -> None:
    pacing_of(pool_name(ElectionRow), "default").waits_until = math.inf
    with Election("new").campaign(timeout=60) as term:
        assert term.is_leader


def test_a_former_leader_is_told_and_commits_nothing() -> None:
    term = Election("reports").campaign()
    steal(row(), holder="the next one")
    with pytest.raises(LeaseLost), transaction.atomic(), term.guard():
        change(row(), elected_at=None)
    assert not term.is_leader
    assert row().elected_at is not None
    with pytest.raises(LeaseLost):
        term.resign()
    assert row().holder == "the next one"


def test_a_term_whose_beginning_cannot_be_written_down_is_given_up() -> None:
    def refuse(send: object, sql: str, *rest: object) -> object:
        if "elected_at" in sql and sql.startswith("UPDATE"):
            raise KeyboardInterrupt
        return send(sql, *rest)  # type: ignore[operator]

    with pytest.raises(KeyboardInterrupt), connection.execute_wrapper(refuse):
        Election("reports").campaign()
    assert Election("reports").leader() is None


def test_a_term_ends_whose_beginning_the_program_refuses() -> None:
    def refuse(_: Term) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Election("reports", on_elected=refuse).campaign()
    assert Election("reports").leader() is None


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", 7])
def test_a_name_is_one_line(name: str) -> None:
    with pytest.raises(BadOption, match="name="):
        Election(name)


def test_the_terms_of_jobs_are_nothing_to_the_history_and_no_term_is_a_leak() -> None:
    """A process that leads as long as it runs may drop the handle."""
    with Election("reports").campaign() as term, Election("sweep", Job).campaign() as job:
        assert isinstance(term, Term)
        assert (term.model.emits_events, job.model.emits_events) == (True, False)
        logged = InBackground(lambda: term._report_leak("no code refers to its handle"))
        assert logged.result() is None


def test_who_stands_by_is_listed_and_a_leader_may_resign_in_favour_of_one() -> None:
    election = Election("reports")
    first = election.campaign()
    waiting = []
    for count in (1, 2):
        waiting.append(InBackground(lambda: Election("reports").campaign(timeout=60)))
        eventually(lambda count=count: Ticket.objects.count() == count, within=30)  # type: ignore[misc]
    second, third = election.standbys()
    with pytest.raises(BadOption, match="a standby"):
        first.resign(to="nobody")
    assert first.is_leader
    first.resign(to=third)
    term = waiting[1].result()
    assert term.holder == third
    term.resign()
    assert waiting[0].result().holder == second


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 100_000, 7, "'; DROP TABLE x; --", "名"])
def test_nobody_has_a_hostile_name(name: Any) -> None:
    with Election("reports").campaign() as term:
        with pytest.raises(BadOption, match="to="):
            term.resign(to=name)
        assert term.is_leader


def test_a_program_is_told_that_it_is_elected_and_that_it_has_lost() -> None:
    told: list[str] = []
    election = Election(
        "reports", on_elected=lambda term: told.append("elected"), on_lost=lambda term: told.append("lost")
    )
    election.campaign().resign()
    term = election.campaign()
    steal(row(), holder="the next one")
    with pytest.raises(LeaseLost):
        term.renew()
    eventually(lambda: told == ["elected", "elected", "lost"], 30, lambda: told)


def test_a_campaign_ends_when_its_caller_does_not_want_it_any_more() -> None:
    with Election("reports").campaign():
        waiting = InBackground(lambda: Election("reports").campaign(stop=lambda: True))
        with pytest.raises(AcquireTimeout, match=r"^election 'reports' was not won$"):
            waiting.result(30)


async def _campaigns() -> tuple[bool, int]:
    term = await Election("reports").acampaign(timeout=30)
    other = await Election("reports").atry_now()
    await term.aresign()
    return other is None, term.fence


def test_elections_work_under_asyncio() -> None:
    was_alone, term = asyncio.run(_campaigns())
    assert was_alone
    assert row().fence > term

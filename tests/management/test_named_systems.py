"""What the commands of all systems whose rows are known by name have in common: showing, paging, pausing, why."""

from collections.abc import Iterator

import pytest
from django.db.models import Model
from django.utils.timezone import now

from resourcepool.models import Dispenser, Stream, Timer, Topic
from resourcepool.status.registry import named_systems
from resourcepool.status.system import NamedSystem
from resourcepool.taskqueue import submit
from tests.committed import transactional_db
from tests.management.command_runner import run
from tests.taskqueue.dispenser_rows import tasks

__all__ = ["transactional_db"]
COMMANDS = {
    "stream": "streams",
    "dispenser": "dispenser",
    "topic": "topics",
    "channel": "channels",
    "election": "elections",
}
PAUSED = {
    "streams": ("Stream", Stream),
    "dispenser": ("Dispenser", Dispenser),
    "topics": ("Timer topic", Topic),
}

WORK = {  # without any there is nothing to explain
    "streams": lambda: submit("reviews", "note"),
    "dispenser": lambda: tasks("a"),
    "topics": lambda: Timer.objects.create(topic_id="reviews", name="a", due_at=now(), busy_before=now()),
}


@pytest.fixture
def system(transactional_db: None, request: pytest.FixtureRequest) -> Iterator[NamedSystem]:
    """The system of this name; its rows are removed afterwards."""
    found: NamedSystem = named_systems()[request.param]
    yield found
    found.reader.model._base_manager.all().delete()


each = pytest.mark.parametrize(("system", "command"), COMMANDS.items(), indirect=["system"])
each_pausable = pytest.mark.parametrize("command", PAUSED)


def new(model: type[Model], name: str) -> None:
    model._base_manager.create(name=name)


def names(system: NamedSystem, command: str, *words: str) -> tuple[list[str], str]:
    """Return the names that are shown, and after which the next page begins."""
    page = run(command, "show", *words, "--json").json
    (rows,) = (value for key, value in page.items() if key != "after")
    return [row["name"] for row in rows], page["after"]


def test_every_named_system_has_a_command() -> None:
    assert set(COMMANDS) == set(named_systems())


@each
def test_without_rows_it_says_where_they_come_from(system: NamedSystem, command: str) -> None:
    assert run(command).out == f"{system.none_yet}\n"


@each
def test_rows_are_shown_by_name_a_page_at_a_time(system: NamedSystem, command: str) -> None:
    for name in ("a", "a b", "c"):
        new(system.reader.model, name)
    assert names(system, command, "--limit", "2") == (["a", "a b"], "a b")
    assert run(command, "show", "--limit", "2").out.endswith("There are more: show --after 'a b'\n")
    assert names(system, command, "--after", "a b") == (["c"], "")
    assert "more" not in run(command, "show", "--after", "a b").out
    assert names(system, command, "--containing", "c") == (["c"], "")
    assert run(command, "show", "--after", "z").out == "There are none.\n"
    assert "limit" in run(command, "show", "--limit", "0").err
    assert "after='x\\ny'" in run(command, "show", "--after", "x\ny").err


@each
def test_a_name_that_is_mistyped_is_refused_with_those_that_there_are(
    system: NamedSystem, command: str
) -> None:
    assert run(command, "show", "reveiws").code != 0
    new(system.reader.model, "reviews")
    assert "must be one of reviews" in run(command, "show", "reveiws").err


@each
def test_why_says_what_its_line_says(system: NamedSystem, command: str) -> None:
    new(system.reader.model, "reviews")
    shown = run(command, "show", "reviews").out
    assert "reviews" in shown
    assert run("why", "reviews").out == shown


@each_pausable
@pytest.mark.django_db
def test_it_is_paused_and_resumed(command: str) -> None:
    word, model = PAUSED[command]
    new(model, "reviews")
    WORK[command]()
    assert run(command, "pause", "reviews").out == f"{word} reviews was paused.\n"
    assert run(command, "pause", "reviews").err == "1 skipped: already paused.\n"
    assert "it is paused" in run(command).out
    assert names_of_paused(command) == ["reviews"]
    assert run(command, "resume", "reviews").out == f"{word} reviews was resumed.\n"
    assert names_of_paused(command) == []


def names_of_paused(command: str) -> list[str]:
    page = run(command, "show", "--status", "paused", "--json").json
    (rows,) = (value for key, value in page.items() if key != "after")
    return [row["name"] for row in rows]


@each_pausable
@pytest.mark.django_db
def test_what_is_refused_changes_nothing(command: str) -> None:
    _word, model = PAUSED[command]
    assert run(command, "pause", "reveiws").code != 0
    new(model, "reviews")
    assert "must be one of reviews" in run(command, "pause", "reveiws").err
    assert "work only with show" in run(command, "--json", "pause", "reviews").err
    assert not model.objects.get().is_paused

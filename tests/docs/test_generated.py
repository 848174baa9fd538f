"""What the reference says is what the code has: nothing is missing, nothing is empty."""

import re
from importlib import import_module

import pytest
from django.core.management import get_commands

from resourcepool import exceptions
from resourcepool.documentation import documented
from resourcepool.signals import EventKind
from resourcepool.status.alarm import AlarmKind
from tests.docs.site import generated
from tests.spawned import ROOT

DOCS = ROOT / "docs"
RUNBOOK = (DOCS / "operations" / "runbook.md").read_text()
API = (DOCS / "reference" / "api.md").read_text()
PACKAGES = (
    "",
    ".locks",
    ".queues",
    ".taskqueue",
    ".elections",
)  # that users import from, besides timers: a whole module


@pytest.mark.parametrize("package", [f"resourcepool{end}" for end in PACKAGES])
def test_the_api_page_describes_every_public_name(package: str) -> None:
    names = {name for name in import_module(package).__all__ if not name.startswith("__")}
    exceptions_page = {name for name in names if hasattr(exceptions, name)}
    described = set(re.findall(rf"{re.escape(package)}\.(\w+)$", API, re.MULTILINE))
    assert names
    assert names - exceptions_page <= described


@pytest.mark.parametrize("kind", AlarmKind)
def test_the_runbook_says_of_each_alarm_why_what_to_do_and_when_to_call_a_colleague(kind: AlarmKind) -> None:
    (row,) = re.findall(rf"^\| `{kind.value}` \| (.*) \|$", RUNBOOK, re.MULTILINE)
    assert len([cell for cell in row.split(" | ") if cell.strip()]) == 3


def test_the_runbook_lists_severe_alarms_before_mild_ones_the_worst_first() -> None:
    assert re.findall(r"^\| `(\w+)` \|", RUNBOOK, re.MULTILINE) == [kind.value for kind in AlarmKind]


def test_every_command_has_a_section_and_every_option_a_meaning() -> None:
    page = generated().commands()
    ours = sorted(name for name, app in get_commands().items() if app.startswith("resourcepool"))
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == ours
    assert re.findall(r"^\| `[^`]+` \|  ?\|$", page, re.MULTILINE) == []


def test_every_kind_of_event_has_a_signal() -> None:
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \| `\w+` \|$", generated().events(), re.MULTILINE) == list(
        EventKind
    )


def test_every_gauge_has_a_meaning() -> None:
    rows = generated().metrics().splitlines()[2:]
    assert len(rows) > 30
    assert all(re.fullmatch(r"\| `resourcepool_\w+` \| .+ \| [A-Z].+\. \|", row) for row in rows)


@pytest.mark.parametrize("code", ["E005", "W004", "E011", "W001"])
def test_a_check_shows_the_message_of_the_code(code: str) -> None:
    level, *said = generated().check(code).split("\n\n")
    assert level in ("*error*", "*unsafe*", "*warning*")
    assert all(len(text) > 40 for text in said)


def test_every_mark_of_a_page_is_filled_in() -> None:
    marked = [path for path in DOCS.rglob("*.md") if "<!-- generated" in path.read_text()]
    assert {str(path.relative_to(DOCS))[:-3] for path in marked} == set(generated().PAGES)
    for path in marked:
        assert "<!-- generated" not in generated().fill(path.read_text())


def test_exceptions_are_documented_from_their_docstrings() -> None:
    ours = [one for one in vars(exceptions).values() if getattr(one, "__module__", "") == exceptions.__name__]
    assert all(one.__doc__ for one in ours if isinstance(one, type))


def test_an_address_is_of_the_site_that_the_package_names() -> None:
    assert re.fullmatch(r"https://.*/reference/checks\.html#w004", documented("reference/checks", "w004"))

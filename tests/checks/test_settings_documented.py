"""docs/settings.md tells of every setting what conf.py does with it."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from resourcepool.checks.settings import check_settings
from resourcepool.conf import DEFAULTS, POOL_OPTIONS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "settings.md").read_text()
ROWS = dict(re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", TEXT, re.MULTILINE))


def test_every_setting_has_a_row_and_nothing_else_has() -> None:
    assert set(ROWS) == set(DEFAULTS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_row_has_the_default_what_is_allowed_and_what_it_means(name: str) -> None:
    default, allowed, meaning = ROWS[name].split(" | ")
    assert ast.literal_eval(default.strip("`")) == DEFAULTS[name]
    assert allowed
    assert meaning


def test_the_options_of_a_pool_are_those_that_there_are() -> None:
    assert tuple(re.findall(r"`(\w+)`", ROWS["POOLS"].split(" | ")[1])) == POOL_OPTIONS


def test_the_example_is_accepted(settings: Any) -> None:
    (example,) = re.findall(r"```python\nRESOURCEPOOL = (\{.*?\n\})\n```", TEXT, re.DOTALL)
    settings.RESOURCEPOOL = ast.literal_eval(example)
    assert check_settings() == []


def test_what_it_points_to_is_there() -> None:
    for file, heading in re.findall(r"\]\((\w+\.md)?#([a-z-]+)\)", TEXT):
        titles = re.findall(r"^#+ (.*)$", (DOCS / (file or "settings.md")).read_text(), re.MULTILINE)
        assert heading in [re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") for title in titles], (
            heading
        )

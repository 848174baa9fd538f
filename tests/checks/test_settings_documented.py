"""docs/settings.md documents every setting as conf.py defines it."""

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


def test_there_is_one_row_per_setting() -> None:
    assert set(ROWS) == set(DEFAULTS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_row_has_default_range_and_meaning(name: str) -> None:
    default, allowed, meaning = ROWS[name].split(" | ")
    assert ast.literal_eval(default.strip("`")) == DEFAULTS[name]
    assert allowed
    assert meaning


def test_the_documented_pool_options_exist() -> None:
    assert tuple(re.findall(r"`(\w+)`", ROWS["POOLS"].split(" | ")[1])) == POOL_OPTIONS


def test_the_example_is_accepted(settings: Any) -> None:
    (example,) = re.findall(r"```python\nRESOURCEPOOL = (\{.*?\n\})\n```", TEXT, re.DOTALL)
    settings.RESOURCEPOOL = ast.literal_eval(example)
    assert check_settings() == []


def test_links_lead_to_existing_targets() -> None:
    for file, heading in re.findall(r"\]\((\w+\.md)?#([a-z-]+)\)", TEXT):
        titles = re.findall(r"^#+ (.*)$", (DOCS / (file or "settings.md")).read_text(), re.MULTILINE)
        assert heading in [re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") for title in titles], (
            heading
        )

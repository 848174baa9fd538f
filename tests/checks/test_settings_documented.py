"""docs/reference/settings.md shows every setting as conf.py defines it."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from resourcepool.checks.settings import check_settings
from resourcepool.conf import DEFAULTS, POOL_OPTIONS
from tests.docs.site import generated

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
SECTION = re.compile(r"^### `([A-Z_]+)`\n\n(.*?)\n\nDefault: `([^\n]*)`$", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, tuple[str, str]]:
    """Return {setting: (its meaning, its default)} of the page."""
    return {name: (meaning, default) for name, meaning, default in SECTION.findall(generated().settings())}


def test_there_is_one_section_per_setting() -> None:
    assert list(sections()) == list(DEFAULTS)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_section_has_the_meaning_and_the_default(name: str) -> None:
    meaning, default = sections()[name]
    assert meaning.endswith(".")
    assert ast.literal_eval(default) == DEFAULTS[name]


def test_the_documented_pool_options_exist() -> None:
    words = re.findall(r"`(\w+)`", sections()["POOLS"][0])
    assert tuple(words) == POOL_OPTIONS


def test_the_example_is_accepted(settings: Any) -> None:
    (example,) = re.findall(r"```python\nRESOURCEPOOL = (\{.*?\n\})\n```", PAGE.read_text(), re.DOTALL)
    settings.RESOURCEPOOL = ast.literal_eval(example)
    assert check_settings() == []

"""The public names of the package."""

import importlib
import subprocess
import sys
import tomllib
from types import ModuleType

import pytest

import resourcepool
from resourcepool import documentation
from tests.spawned import ROOT

LAZY = [
    importlib.import_module(f"resourcepool{name}")
    for name in ("", ".elections", ".locks", ".queues", ".taskqueue", ".taskqueue.timers")
]
WITHOUT_SETTINGS = """
from resourcepool.exceptions import BadOption, LeaseLost
print(LeaseLost("gone"), BadOption("ttl", 0, "1"))
"""


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_every_name_that_is_offered_can_be_had(package: ModuleType) -> None:
    assert {*package.__all__} <= {*dir(package)}
    for name in dir(package):
        exec(f"from {package.__name__} import {name}", {})


def test_tab_offers_what_can_be_imported() -> None:
    assert "Lock" in dir(importlib.import_module("resourcepool.locks"))
    assert "timers" in dir(importlib.import_module("resourcepool.taskqueue"))


def test_any_other_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'resourcepool' has no attribute 'Lock'"):
        resourcepool.Lock  # type: ignore[attr-defined]  # noqa: B018


def test_exceptions_need_no_settings() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_SETTINGS],
        cwd=ROOT,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "gone ttl=0 is not allowed: it must be 1\n", run.stderr


def test_texts_link_to_the_documentation_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Documentation"] == documentation.SITE

"""The packages that a docs page installs are all that its recipe needs."""

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.spawned import ROOT

DOCS = Path(ROOT) / "docs"
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())

import django
from django.conf import settings

settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "resourcepool"])
django.setup()
import {modules}
"""


@pytest.mark.parametrize(
    ("page", "recipe", "modules"),
    [
        ("how-to/celery.md", "CELERY_BROKER_URL", "celery.app.base, kombu.transport.redis, django_celery_beat"),
        ("how-to/celery.md", "LeasedDatabaseScheduler", "celery.app.base, django_celery_beat"),
        ("how-to/hints.md", "amqp://", "kombu.transport.pyamqp"),
        ("how-to/hints.md", "redis://", "redis"),
        ("how-to/health-checks.md", "CHECKS", "httpcore, certifi, resourcepool.proxies.health_check.request"),
    ],
)
def test_nothing_is_missing_after_the_install_that_a_page_names(page: str, recipe: str, modules: str) -> None:
    named = closure(requirements(page, recipe))
    missing = {
        module
        for module, owners in packages_distributions().items()
        if not named.intersection(map(canonicalize_name, owners))
    }
    script = WITHOUT.format(missing=missing, modules=modules)
    done = subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_not_named_is_missed() -> None:
    assert "djangorestframework" not in closure(
        [Requirement("django-resourcepool[celery]"), Requirement("redis")]
    )


def requirements(page: str, recipe: str) -> list[Requirement]:
    """Return what ``pip install`` installs on the page: on the line of the recipe, or the last one before it."""
    said: list[str] = []
    for line in (DOCS / page).read_text().splitlines():
        if found := re.search(r"pip install (.*)", line):
            said = re.findall(r"[\w.\[\],-]+", found[1])
        if recipe in line and said:
            return [Requirement(one) for one in said]
    raise AssertionError(f"{page} names no pip install before {recipe}")


def closure(wanted: Iterable[Requirement]) -> set[str]:
    """Return the names of everything that is installed with these, by what is installed here."""
    found: set[tuple[str, str]] = set()
    ahead = [(canonicalize_name(one.name), extra) for one in wanted for extra in ("", *one.extras)]
    while ahead:
        name, extra = ahead.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for text in requires(name) or ():
            one = Requirement(text)
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                ahead += [(canonicalize_name(one.name), more) for more in ("", *one.extras)]
    return {name for name, _extra in found}

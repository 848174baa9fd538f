"""docs/how-to/own-resource.md, a new kind of resource, in its own project."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spawned import ROOT

SETTINGS = """
from project.settings import *
from project.settings import INSTALLED_APPS, RESOURCEPOOL

INSTALLED_APPS = [*INSTALLED_APPS, "phones"]
RESOURCEPOOL = {**RESOURCEPOOL, "CHECKS": {"phones.Phone": {}}}
"""
MAKES_IT = """
import django

django.setup()

from django.core.management import call_command
from phones.models import Phone

call_command("check")
call_command("makemigrations", "phones")
call_command("migrate", verbosity=0)
Phone.objects.create(number="+49 1")
Phone.objects.create(number="2")
"""
USES_IT = """
import django

django.setup()

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from phones.models import Phone

with Phone.pool.lease(timeout=0) as lease:
    print("leased", lease.resource.number)
browser = Client()
browser.force_login(get_user_model().objects.create_superuser("operator"))
print("list", browser.get("/admin/phones/phone/", headers={"host": "localhost"}).status_code)
print("dashboard", "phones.Phone" in browser.get("/admin/resourcepool/dashboard/", headers={"host": "localhost"}).text)
call_command("resourcepool_status")
call_command("resourcepool_why", "phone", "2")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write the files of the example, and settings with their app."""
    text = (ROOT / "docs" / "how-to" / "own-resource.md").read_text()
    files = re.findall(r"^`(phones/\w+\.py)`:\n\n```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in files] == ["phones/models.py", "phones/checker.py", "phones/admin.py"]
    (tmp_path / "phones" / "migrations").mkdir(parents=True)
    for name, code in [*files, ("phones/__init__.py", ""), ("phones/migrations/__init__.py", "")]:
        (tmp_path / name).write_text(code)
    (tmp_path / "phone_settings.py").write_text(SETTINGS)
    return tmp_path


def run(project: Path, *command: str, code: int = 0) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(project), str(ROOT)]),
        "DJANGO_SETTINGS_MODULE": "phone_settings",
        "DATABASE_URL": f"sqlite:///{project}/db.sqlite3",
    }
    done = subprocess.run(
        [sys.executable, *command], check=False, cwd=project, env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_one_model_is_leased_checked_and_shown_everywhere(project: Path) -> None:
    run(project, "-c", MAKES_IT)
    checked = run(project, "-m", "django", "resourcepool_check", "phone", code=1)  # one is bad
    assert "phones.Phone: 1 ok, 1 bad, 0 unknown" in checked
    said = run(project, "-c", USES_IT)
    assert "leased +49 1" in said
    assert "list 200" in said
    assert "dashboard True" in said
    assert re.search(r"phones\.Phone +1 +0", said), said
    assert "no country code" in said

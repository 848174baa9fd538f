"""A system of another app, declared in one module, is found on every surface."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spawned import ROOT

SETTINGS = """
from tests.settings import *
from tests.settings import INSTALLED_APPS, MIGRATION_MODULES

INSTALLED_APPS = [*INSTALLED_APPS, "tests.announcements"]
MIGRATION_MODULES = {**MIGRATION_MODULES, "announcements": None}
"""
LOOKS = """
import django

django.setup()

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from tests.announcements.models import Announcement

call_command("migrate", run_syncdb=True, verbosity=0)
Announcement.objects.create(name="party")
Announcement.objects.create(name="fire drill", reader="ann")
client = Client(SERVER_NAME="localhost")
client.force_login(get_user_model().objects.create_superuser("operator"))


def got(address):
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.content)
    print(answer.content.decode())


"""
DASHBOARD, LISTED = "/admin/resourcepool/dashboard/", "/admin/announcements/announcement/"
BY_ADMIN = f"""
answer = client.post({LISTED + "party/operate/read/"!r}, {{"confirmed": 1}}, follow=True)
print(answer.content.decode(), Announcement.objects.get(name="party").reader)
"""
BY_COMMAND = """
Announcement.objects.update(reader="")
call_command("resourcepool_operate", "read", "announcement", "party", "--dry-run")
print(Announcement.objects.filter(reader="").count())
try:
    call_command("resourcepool_operate", "read", "announcement", "party", "--reason", "why not")
except Exception as error:
    print(error)
call_command("resourcepool_operate", "read", "announcement", "party", "fire drill")
"""
BY_REST = """
Announcement.objects.update(reader="")
for _ in range(2):
    print(client.post("/api/announcements/party/read", {}, "application/json").json())
print(Announcement.objects.get(name="party").reader)
"""
SURFACES = {
    "dashboard": (
        f"got({DASHBOARD!r})",
        ["Announcements", "not read yet", "fire drill", "nobody has read it."],
    ),
    "admin list": (f"got({LISTED!r})", ["fire drill", "ann", "2 announcements"]),
    "admin page": (f"got({LISTED + 'party/change/'!r})", ["party", "Reader:"]),
    "command": (
        "call_command('resourcepool_show', 'announcements')",
        ["announcement  status", "party: not read yet"],
    ),
    "a page": ("call_command('resourcepool_show', 'announcements', '--status', 'unread')", ["party"]),
    "JSON": (
        "call_command('resourcepool_show', 'announcements', 'party', '--json')",
        ['"explanation": "not read yet"'],
    ),
    "why": ("call_command('resourcepool_why', 'party')", ["announcement  status", "party: not read yet"]),
    "status": ("call_command('resourcepool_status')", ["announcement: party: nobody has read it."]),
    "metrics": (
        "got('/api/metrics')",
        ['resourcepool_announcement_read{announcement="fire drill"} 1.0'],
    ),
    "REST": ("got('/api/announcements')", ['"name":"party","reader":""', '"after":""']),
    "REST of one": ("got('/api/announcements/party')", ['"explanation":"not read yet"']),
    "REST alarms": ("got('/api/alarms')", ["announcement: party"]),
    "OpenAPI": ("got('/api/openapi')", ['"/announcements/{name}"', '"/announcements/{name}/read"']),
    "buttons": (f"got({LISTED!r}); got({LISTED + 'party/change/'!r})", ["party/operate/read/", "operate-read"]),
    "operation in the admin": (
        BY_ADMIN,
        ["party was read.", "operator"],
    ),
    "operation by command": (
        BY_COMMAND,
        ["Would change", "2\n", "--reason cannot be combined with read", "was read", "party"],
    ),
    "operation by REST": (
        BY_REST,
        ["{'changed': 1}", "{'changed': 0}", "operator"],
    ),
    "nothing of that name": (
        "Announcement.objects.all().delete()\nprint(client.get('/api/announcements/party').json())",
        ["there is none yet"],
    ),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each surface shows, in a project with the app."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "announcing.py").write_text(SETTINGS)
    looks = [f"print('@@@ {surface}')\n{look}" for surface, (look, _texts) in SURFACES.items()]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "DJANGO_SETTINGS_MODULE": "announcing",
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
    }
    script = "\n".join([LOOKS, *looks])
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = done.stdout.split("@@@ ")[1:]
    return dict(part.split("\n", 1) for part in parts)


@pytest.mark.parametrize("surface", SURFACES)
def test_it_is_shown_on(surface: str, shown: dict[str, str]) -> None:
    for text in SURFACES[surface][1]:
        assert text in shown[surface]


def test_its_declaration_fits_on_a_page() -> None:
    declaration = Path(ROOT / "tests" / "announcements" / "models.py").read_text()
    assert len(declaration.splitlines()) <= 75, "of which a quarter is the model and its operation"

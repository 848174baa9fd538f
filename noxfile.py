"""``make matrix``: the tests for every supported Python and Django, on SQLite or on the database in DATABASE_URL."""

from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True

MATRIX = [
    (python, django)
    for python in ("3.11", "3.12", "3.13")
    for django in ("5.2", "6.0")
    if (python, django) != ("3.11", "6.0")  # Django 6.0 needs Python 3.12
]


@nox.session
@nox.parametrize(("python", "django"), MATRIX)
def tests(session: nox.Session, django: str) -> None:
    """Run pytest; what follows ``--`` goes to it."""
    pins = [pin for pin in Path("requirements.txt").read_text().splitlines() if not pin.startswith("Django==")]
    limits = Path(session.create_tmp(), "limits.txt")
    limits.write_text("\n".join([*pins, f"Django=={django}.*"]))
    session.install("-c", str(limits), "-e", ".[mysql,postgres,dev,celery,rest,checks,demo,bench]")
    session.run(
        "python", "-m", "pytest", "--numprocesses=2", "--dist=worksteal", "-m", "not alone", *session.posargs
    )

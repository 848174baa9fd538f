"""``make matrix``: the tests for every supported Python and Django, on SQLite or on the database in DATABASE_URL."""

import re
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
    lock = Path("requirements.txt").read_text()
    install_locked(session, lock.partition("## mariadb")[0], "--only-binary=:all:")
    install_locked(session, lock.partition("## mariadb")[2], "--no-build-isolation")
    if not re.search(rf"^django=={re.escape(django)}\.", lock, re.MULTILINE):
        session.install("--no-deps", f"Django=={django}.*")  # the one that is not checked by its hash
    session.install("--no-deps", "--no-build-isolation", "-e", ".")
    session.run(
        "python", "-m", "pytest", "--numprocesses=2", "--dist=worksteal", "-m", "not alone", *session.posargs
    )


def install_locked(session: nox.Session, lines: str, *options: str) -> None:
    """Install these lines of the lock."""
    file = Path(session.create_tmp(), "locked.txt")
    file.write_text(lines)
    session.install("--require-hashes", "-r", str(file), *options)

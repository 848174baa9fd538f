"""The classic programs for a time; what goes wrong ends it with the error.

python -m tests.locks.classic                                      a minute on MariaDB
python -m tests.locks.classic --seconds 180 --database postgresql
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import django

from tests.processes import terminable
from tests.servers import SERVERS

FOR_EVER = 10**9  # rounds


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.locks.classic",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", choices=("sqlite", *SERVERS), default="mariadb")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, all of them together")
    chosen = parser.parse_args(words)
    with terminable(), tempfile.TemporaryDirectory() as place:
        if chosen.database == "sqlite":
            everything(f"sqlite:///{place}/db.sqlite3", Path(place), chosen.seconds / 4)
            return
        with SERVERS[chosen.database]() as server:
            everything(server.url, Path(place), chosen.seconds / 4)


def everything(url: str, place: Path, seconds: float) -> None:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
    django.setup()
    from django.core.management import call_command

    from tests.locks.classic import programs
    from tests.spawned import Spawner

    call_command("migrate", verbosity=0)
    spawner = Spawner(url)
    each: dict[str, Callable[[Path], int]] = {
        "meals, forks in order": lambda folder: programs.philosophers(
            spawner, folder, FOR_EVER, "in order", pause
        ),
        "meals, with timeouts": lambda folder: programs.philosophers(
            spawner, folder, FOR_EVER, "with timeouts", pause
        ),
        "pages written": lambda folder: programs.readers_and_writers(spawner, folder, FOR_EVER, pause),
        "items through the buffer": lambda folder: programs.bounded_buffer(spawner, folder, FOR_EVER, pause),
    }

    def pause() -> None:
        time.sleep(seconds)

    try:
        for number, (what, program) in enumerate(each.items()):
            (folder := place / str(number)).mkdir()
            print(f"{what:<30}{program(folder):>10,}", flush=True)
    finally:
        spawner.close()


if __name__ == "__main__":
    main(sys.argv[1:])

"""Many threads, or tasks of asyncio, of one process share 40 resources, each held for 50 ms.

python -m benchmarks.together                      on a private MariaDB; "postgres", "sqlite": on that; a minute
python -m benchmarks.together --members 300        so many, instead of 8, 100 and 300
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import django

from benchmarks.ours import Ours
from benchmarks.places import place
from tests.servers import ServerMissing

MEMBERS = (8, 100, 300)
ROWS = 40
HELD = 0.05  # seconds, like all times here
MEASURED = 8.0
TIMEOUT = 60.0
CONTEXT = multiprocessing.get_context("fork")  # a process for each: what it does in the background ends with it


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.together",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=("mysql", "postgres", "sqlite"), default="mysql")
    parser.add_argument("--members", action="append", type=int, help="may be repeated")
    chosen = parser.parse_args(words)
    try:
        with place(chosen.database) as url:
            os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
            django.setup()
            for members in chosen.members or MEMBERS:
                for name, work in (("threads", _in_threads), ("tasks", _in_tasks)):
                    one = CONTEXT.Process(target=_show, args=(f"{members} {name}", work, members))
                    one.start()
                    one.join()
    except ServerMissing as missing:
        print(missing)
        return 2
    return 0


def _show(what: str, work: Callable[[int, float, list[float]], None], members: int) -> None:
    Ours.prepare("", ROWS)
    waits: list[float] = []
    began, used = time.monotonic(), time.process_time()
    work(members, began + MEASURED, waits)
    took, used = time.monotonic() - began, time.process_time() - used
    waits.sort()
    p50, p99 = (waits[int(len(waits) * share)] * 1_000 for share in (0.5, 0.99))
    print(
        f"{what} on {ROWS} held {HELD * 1_000:.0f} ms: {len(waits) / took:,.0f} cycles/s; wait p50 {p50:,.0f} ms,"
        f" p99 {p99:,.0f} ms; {used / len(waits) * 1_000:.1f} ms of processor time each; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def _in_threads(members: int, until: float, waits: list[float]) -> None:
    from django.db import connections

    from resourcepool.models import Proxy

    def member() -> None:
        while (asked := time.monotonic()) < until:
            with Proxy.pool.lease(timeout=TIMEOUT) as lease:
                waits.append(time.monotonic() - asked)
                lease.resource  # noqa: B018 (read, as whoever uses it does)
                time.sleep(HELD)
        connections.close_all()

    threads = [threading.Thread(target=member) for _ in range(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _in_tasks(members: int, until: float, waits: list[float]) -> None:
    from resourcepool.models import Proxy

    pool: Any = Proxy.pool

    async def member() -> None:
        while (asked := time.monotonic()) < until:
            async with pool.alease(timeout=TIMEOUT) as lease:
                waits.append(time.monotonic() - asked)
                lease.resource  # noqa: B018
                await asyncio.sleep(HELD)

    async def everybody() -> None:
        await asyncio.gather(*(member() for _ in range(members)))

    asyncio.run(everybody())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

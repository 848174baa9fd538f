"""One consumer of a benchmark, until SIGTERM: it notes when each task begins, by the clock that all processes share.

python -m benchmarks.consuming STREAM FILE

DATABASE_URL is the database, BENCH_HINTS the setting HINTS.
"""

import logging
import os
import signal
import sys
import time
from typing import Any

import django

TYPE = "note"


def use_hints() -> None:
    """Send and hear hints as BENCH_HINTS says."""
    from django.conf import settings

    from resourcepool.hints.choice import load

    if os.environ["BENCH_HINTS"]:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": os.environ["BENCH_HINTS"]}
        load()  # hints, as the app does when it starts


def consume(stream: str, path: str) -> None:
    """Note a line for each task: its key and the moment at which it begins."""
    from resourcepool.taskqueue import Consumer, handler

    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @handler(TYPE)
    def note(task: Any) -> None:
        os.write(file, f"{task.key} {time.monotonic()}\n".encode())

    consumer = Consumer(stream)
    signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
    consumer.run()


if __name__ == "__main__":
    django.setup()
    logging.disable(logging.WARNING)
    use_hints()
    consume(*sys.argv[1:])

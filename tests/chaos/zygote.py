"""A process with all imports done and no connections, from which workers are forked quickly.

python -m tests.chaos.zygote LOG SEED WORKER      each line on its input is a number: fork the worker of that number

WORKER is its class, e.g. tests.chaos.worker:Worker, called with the number, the seed and the log's path.

It answers "NUMBER PID". When its input ends it kills its process group, so that no worker outlives the run.
"""

import faulthandler
import gc
import importlib
import os
import select
import signal
import sys
import time
from pathlib import Path

import django

LIBRARY = "faketime/libfaketime.so.1"


def disguised(shift: str) -> dict[str, str] | None:
    """Return the environment in which the wall clock is off by ``shift`` ("+1h"); None without libfaketime."""
    found = sorted(Path("/usr/lib").glob(f"*/{LIBRARY}")) or sorted(Path("/usr/lib").glob(LIBRARY))
    if not found:
        return None
    return {"LD_PRELOAD": str(found[0]), "FAKETIME": shift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def main(log: str, seed: str, worker: str) -> None:
    if "FAKETIME" in os.environ:
        # Its clock_nanosleep refuses CLOCK_MONOTONIC, which time.sleep uses (wolfcw/libfaketime#426).
        time.sleep = lambda seconds: select.select([], [], [], seconds) and None
    django.setup()
    module, _, name = worker.partition(":")
    kind = getattr(importlib.import_module(module), name)

    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead need not be waited for
    print(f"ready {time.time():.0f}", flush=True)
    number = _forked()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR1)  # asked of those who do not leave: where are you?
    kind(number, int(seed), Path(log)).work()


def _forked() -> int:
    """Fork whenever told to; returns in the children only."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            return int(line)
        print(int(line), pid, flush=True)
    os.killpg(0, signal.SIGKILL)
    raise AssertionError("unreachable")


if __name__ == "__main__":
    main(*sys.argv[1:])

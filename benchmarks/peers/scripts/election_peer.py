"""What is asked of an election: how long after the end of a leader the next one begins.

with_PEER.py measure TIMES   prints the seconds as JSON
with_PEER.py lead 1          contends, until SIGTERM
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from noting import WITHIN, eventually, note, noted

PAUSES = (0.5, 1.0)  # seconds, drawn evenly
WAYS = (("kill -9", signal.SIGKILL), ("clean stop", signal.SIGTERM))


def main(lead: Callable[[Callable[[], None], threading.Event], None], standbys: Callable[[], int]) -> None:
    """Do what the command line says.

    Args:
        lead: waits until it leads, calls the first, leads until the second is set, and resigns.
        standbys: returns how many wait.
    """
    if sys.argv[1] == "lead":
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        lead(lambda: note(os.getpid()), stopped)
        return
    print(json.dumps({way: [_failover(sent, standbys) for _ in range(int(sys.argv[2]))] for way, sent in WAYS}))


def _failover(sent: signal.Signals, standbys: Callable[[], int]) -> float:
    pair = [subprocess.Popen([sys.executable, sys.argv[0], "lead", "1"]) for _ in range(2)]
    try:
        eventually(lambda: any(str(one.pid) in noted() for one in pair) and standbys() == 1, "a pair")
        leader, standby = sorted(pair, key=lambda one: str(one.pid) not in noted())
        time.sleep(random.uniform(*PAUSES))
        at = time.monotonic()
        leader.send_signal(sent)
        eventually(lambda: str(standby.pid) in noted(), "the next leader")
        return noted()[str(standby.pid)] - at
    finally:
        for one in pair:
            one.terminate()
        for one in pair:
            one.wait(WITHIN)

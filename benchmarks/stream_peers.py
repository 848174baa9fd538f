"""Submit to start of other task queues, as ``benchmarks.streams`` measures it: one worker that has nothing to do.

python -m benchmarks.stream_peers celery                        on a private Redis; Celery is installed with .[test]
python -m benchmarks.stream_peers procrastinate --python FILE   on a private PostgreSQL; a Python that has it
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.fleet import quantile
from benchmarks.places import ROOT, place
from tests.processes import terminable
from tests.servers import ServerMissing

SERVERS = {"celery": "redis", "procrastinate": "postgres"}
CELERY = """
import os, random, sys, threading, time
from celery import Celery
app = Celery(broker=os.environ["URL"], set_as_current=False)
app.conf.task_ignore_result = True
@app.task(name="note")
def note(key):
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{key} {time.monotonic()}\\n")
def work():
    app.worker_main(["worker", "--pool=solo", "--loglevel=ERROR", "--without-gossip", "--without-mingle"])
def submit(key):
    note.delay(key)
"""
PROCRASTINATE = """
import os, random, sys, threading, time
import procrastinate
connector = procrastinate.PsycopgConnector if sys.argv[1] == "work" else procrastinate.SyncPsycopgConnector
app = procrastinate.App(connector=connector(conninfo=os.environ["URL"]))
@app.task(name="note")
def note(key):
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{key} {time.monotonic()}\\n")
def work():
    app.run_worker(delete_jobs="successful")
def submit(key):
    note.defer(key=key)
if sys.argv[1] == "submit":
    app.open()
    app.schema_manager.apply_schema()
"""
# The worker is started by the submitter, when the tables are there; the first task is not counted: it waits for it.
MAIN = """
import subprocess
if sys.argv[1] == "work":
    work()
else:
    worker = subprocess.Popen([sys.executable, __file__, "work"])
    def seen(key):
        for line in open(os.environ["NOTES"]):
            if line.startswith(f"{key} ") and line.endswith("\\n"):
                return float(line.split()[1])
    def begun(key):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if (at := seen(key)) is not None:
                return at
            time.sleep(0.005)
        raise SystemExit(f"{key} has not begun")
    try:
        submit("first"); begun("first")
        for number in range(int(sys.argv[2])):
            time.sleep(random.uniform(0.5, 1.0))
            submit(str(number)); at = time.monotonic()
            print("took", begun(str(number)) - at, flush=True)
    finally:
        worker.kill(); worker.wait()
"""


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stream_peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("peer", choices=SERVERS)
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="which runs the peer")
    parser.add_argument("--samples", type=int, default=72)
    chosen = parser.parse_args(words)
    try:
        with place(SERVERS[chosen.peer]) as url:
            took = sorted(_measure(chosen.peer, chosen.python, chosen.samples, url))
    except ServerMissing as missing:
        print(missing)
        return 2
    p50, p99 = (f"{quantile(took, share) * 1_000:.1f} ms" for share in (0.5, 0.99))
    print(f"{chosen.peer}: submit to start p50 {p50}, p99 {p99} of {len(took)}; load {os.getloadavg()[0]:.1f}")
    return 0


def _measure(peer: str, python: str, samples: int, url: str) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="resourcepool-bench-") as folder:
        script, notes = Path(folder, "peer.py"), Path(folder, "notes")
        script.write_text((CELERY if peer == "celery" else PROCRASTINATE) + MAIN)
        notes.touch()
        started = time.monotonic()
        done = subprocess.run(
            [python, str(script), "submit", str(samples)],
            cwd=ROOT,
            env={**os.environ, "URL": url.replace("postgres://", "postgresql://"), "NOTES": str(notes)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{peer} failed after {time.monotonic() - started:.0f} s:\n{done.stderr[-2_000:]}")
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("took ")]


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))

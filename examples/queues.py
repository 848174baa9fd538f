"""`python -m examples.queues`, from the top of the repository: servers share 12 queues, come, go and are killed.

Ten seconds, in a database of its own that is removed afterwards. docs/reference/queues.md says what happens and why.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

QUEUES = 12


def main() -> None:
    """Start three servers, kill one, stop another; after each step, say who has what."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "DATABASE_URL": f"sqlite:///{folder}/queues.db",
        }
        prepare()
        servers: list[subprocess.Popen[bytes]] = []
        try:
            tell(servers)
        finally:
            for server in servers:
                server.terminate()
                server.wait()
        history()


def tell(servers: "list[subprocess.Popen[bytes]]") -> None:
    """Let servers come, die and leave."""
    servers.append(start("A"))
    show("A starts, and has all of them", A=12)
    servers += [start("B"), start("C")]
    show("B and C come: A gives up what is theirs", A=4, B=4, C=4)
    servers[1].send_signal(signal.SIGKILL)
    show("B is killed: presumed dead after 3 s, the others take over", A=6, C=6)
    servers[2].send_signal(signal.SIGTERM)
    show("C is told to stop: it hands over what it has, and leaves", A=12)


def prepare() -> None:
    """Make the tables and the queue group."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    words = [f"1..{QUEUES}", "--new", "--judge-dead", "3s"]
    call_command("resourcepool_queues", "add", "orders", *words)


def start(name: str) -> "subprocess.Popen[bytes]":
    """Start a server in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "examples.queues", name])


def serve(name: str) -> None:
    """Be a server: work on each queue for a moment, again and again, until SIGTERM."""
    import django

    django.setup()
    from resourcepool.queues import QueueServer

    with QueueServer("orders", name=name) as server:
        server.stop_on_signals()
        while not server.stopping:
            for _queue in server.queues():
                time.sleep(0.05)  # the work: whatever belongs to _queue.queue_id


def show(what: str, **wanted: int) -> None:
    """Wait until each server has as many queues as it should, and print which."""
    from resourcepool.status.queues.queue_groups import queue_group
    from resourcepool.status.queues.queues import queues_of

    began = time.monotonic()
    while True:
        queues = queues_of(queue_group("orders"))
        if Counter(one.owner.split(" ")[0] for one in queues) == wanted:
            break
        if time.monotonic() - began > 60:
            sys.exit(f"{what}: not within a minute; is this machine very busy?")
        time.sleep(0.05)
    print(f"\n{what} ({time.monotonic() - began:.1f} s):")
    for name in sorted(wanted):
        print(f"  {name}: {', '.join(one.queue_id for one in queues if one.owner.startswith(name))}")


def history() -> None:
    """Print every move and why."""
    from django.core.management import call_command

    print()
    call_command("resourcepool_queues", "show", "orders")


if __name__ == "__main__":
    serve(sys.argv[1]) if len(sys.argv) > 1 else main()

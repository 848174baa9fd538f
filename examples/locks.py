"""`python -m examples.locks`, from the top of the repository: a lock comes free, though its holder is killed.

A few seconds, in a database of its own that is removed afterwards. docs/reference/locks.md says what happens and why.
"""

import sys
import time

from examples.trial import own_database, processes, set_up, until

TTL = 3  # seconds after the death of its holder until others may have it


def main() -> None:
    """Start two processes that want the same lock, kill the one that has it; then show who has had it."""
    with own_database():
        from resourcepool.locks import Lock

        report = Lock("nightly-report", ttl=TTL)
        with processes("examples.locks", "node-1", "node-2") as nodes:
            until(lambda: len(report.contenders()) == 2, "one to hold the lock and the other to wait")
            holder, fence = report.holder() or ("", 0)
            first = next(name for name, node in nodes.items() if f"/{node.pid}/" in holder)
            second = next(name for name in nodes if name != first)
            nodes[first].kill()
            nodes[first].wait()
            print(f"kill -9 {first}, which held it")
            until(lambda: (report.holder() or ("", 0))[1] > fence, f"{second} to have it")
            print(f"{second} has it, with a greater fence")


def work() -> None:
    """Be a node: hold the lock until SIGTERM."""
    set_up()
    from resourcepool.locks import Lock

    with Lock("nightly-report", ttl=TTL) as held:
        while True:
            held.ensure_held()  # before each step of the work
            time.sleep(0.2)


if __name__ == "__main__":
    work() if len(sys.argv) > 1 else main()

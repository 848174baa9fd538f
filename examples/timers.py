"""`python -m examples.timers`, from the top of the repository: a timer fires, though the node handling it is killed.

A few seconds, in a database of its own that is removed afterwards. docs/reference/timers.md says what happens and why.
"""

import os
import signal
import sys
import time
from datetime import timedelta

from examples.trial import own_database, processes, set_up, until


def main() -> None:
    """Set timers, start two nodes, kill the one that handles a timer; then show how each one ended."""
    with own_database():
        from resourcepool.models import Timer, Topic
        from resourcepool.taskqueue import timers

        Topic.objects.create(
            name="order.timeout", ttl=2
        )  # seconds until the timer of a dead process fires again
        for order in (41, 42, 43):
            timers.schedule(
                f"order-{order}", after=timedelta(seconds=1), topic="order.timeout", payload={"order": order}
            )
        print("cancelled order-43:", timers.cancel("order-43", topic="order.timeout").value)
        rows = Timer.objects.filter(topic_id="order.timeout")
        with processes("examples.timers", "node-1", "node-2") as nodes:
            until(lambda: rows.filter(state="running").exists(), "a timer to fire")
            holder = rows.filter(state="running").values_list("holder", flat=True).first() or ""
            handles = next(name for name, node in nodes.items() if f"/{node.pid}/" in holder)
            nodes[handles].kill()
            nodes[handles].wait()
            print(f"kill -9 {handles}, which handled a timer")
            until(lambda: not rows.unfinished().exists(), "all timers to be over")
        for timer in rows.order_by("name"):
            print(f"  {timer.name}  {timer.state}  {timer.outcome}")


def handle() -> None:
    """Be a node, until SIGTERM."""
    set_up()
    from resourcepool.taskqueue import timers

    @timers.on("order.timeout")
    def expire(timer: timers.RunningTimer) -> dict[str, object]:
        time.sleep(0.5)  # the work: whatever belongs to timer.payload
        return {"process": os.getpid(), "attempt": timer.attempt, "previous_end": timer.previous_end}

    runner = timers.TimerRunner()
    signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    runner.run()


if __name__ == "__main__":
    handle() if len(sys.argv) > 1 else main()

"""`python -m examples.streams`, from the top of the repository: tasks in order, though their consumer is killed.

A few seconds, in a database of its own that is removed afterwards. docs/reference/streams.md says what happens and why.
"""

import os
import signal
import sys
import time

from examples.trial import Child, own_database, processes, set_up, until

TASKS = 12


def main() -> None:
    """Submit tasks, start two consumers, kill the one that leads; then show who ran what."""
    with own_database():
        prepare()
        with processes("examples.streams", "consumer-1", "consumer-2") as consumers:
            kill_the_leader(consumers)
            until(lambda: unfinished() == 0, "all tasks to be done")
        show()


def prepare() -> None:
    """Make the stream, and submit tasks."""
    from django.core.management import call_command

    from resourcepool.taskqueue import NewTask, submit, submit_many

    call_command("resourcepool_streams", "add", "oracle", "--term-ttl", "2")
    submit_many("oracle", [NewTask("resize", {"step": step}, key=f"step-{step}") for step in range(TASKS)])
    again = submit("oracle", "resize", {"step": 0}, key="step-0")
    print(
        f"submitted {TASKS} tasks; step-0 once more: {'new' if again.is_new else 'known, so nothing changed'}"
    )


def consume() -> None:
    """Be a consumer, until SIGTERM."""
    set_up()
    from resourcepool.taskqueue import Consumer, RunningTask, handler

    @handler("resize")
    def resize(task: RunningTask) -> dict[str, int]:
        time.sleep(0.2)  # the work: whatever belongs to task.params
        return {"process": os.getpid(), "attempt": task.attempt}

    consumer = Consumer("oracle")
    signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
    consumer.run()


def kill_the_leader(consumers: dict[str, Child]) -> None:
    """Kill -9 the consumer that leads, in the middle of a task."""
    from resourcepool.status.work.streams import streams

    until(lambda: streams("oracle")[0].leader and unfinished() <= TASKS - 3, "three tasks to be done")
    (stream,) = streams("oracle")
    leader = next(name for name, one in consumers.items() if f"/{one.pid}/" in stream.leader)
    print(f"{stream.leader} leads, {stream.standbys} stands by; kill -9 {leader}")
    consumers[leader].kill()


def unfinished() -> int:
    """Return how many tasks are left."""
    from resourcepool.models import Task

    return int(Task.objects.unfinished().count())


def show() -> None:
    """Print which process did which task."""
    from resourcepool.models import Task

    for task in Task.objects.in_order():
        print(f"  {task.key:<8} {task.state}  {task.outcome}")


if __name__ == "__main__":
    consume() if len(sys.argv) > 1 else main()

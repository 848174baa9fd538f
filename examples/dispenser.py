"""`python -m examples.dispenser`, from the top of the repository: no task is lost, though a worker is killed.

A few seconds, in a database of its own that is removed afterwards.
docs/reference/dispenser.md says what happens and why.
"""

import sys
import time

from examples.trial import own_database, processes, set_up, until

TASKS = 12


def main() -> None:
    """Fill a pool, start two workers, kill one that has tasks; then show what became of each task."""
    with own_database():
        from resourcepool.models import DispenserTask
        from resourcepool.taskqueue import TaskDispenser

        reviews = TaskDispenser("reviews")
        print(
            f"added {reviews.add_many({f'film-{number:02d}': float(number) for number in range(TASKS)})} tasks"
        )
        tasks = DispenserTask.objects.filter(dispenser_id="reviews")
        with processes("examples.dispenser", "alice", "bob") as workers:
            until(lambda: tasks.filter(bucket__name="alice").exists(), "alice to have tasks")
            workers["alice"].kill()
            workers["alice"].wait()
            print(f"kill -9 alice; in her bucket: {tasks.filter(bucket__name='alice').count()}")
            until(lambda: tasks.filter(state="done").count() == TASKS, "all tasks to be done")
        for task in tasks.in_order():
            print(f"  {task.key}  {task.state}  expirations: {task.expirations}")


def work(name: str) -> None:
    """Be a worker: three tasks at a time, until SIGTERM."""
    set_up()
    from resourcepool.taskqueue import TaskDispenser

    reviews = TaskDispenser(
        "reviews", bucket_ttl=3
    )  # seconds after which a dead worker's tasks return to the pool
    while True:
        tasks = reviews.assign_tasks(3, worker=name)  # those that it has, filled up
        time.sleep(0.2)  # the work: whatever belongs to the key of the first one
        reviews.tasks_done(name, tasks[:1])


if __name__ == "__main__":
    work(sys.argv[1]) if len(sys.argv) > 1 else main()

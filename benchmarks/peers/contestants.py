"""Who is measured beside ours."""

from dataclasses import dataclass

QUEUE, ELECTION, WORKERS, LOCK = "queue", "election", "workers", "lock"
POSTGRESQL, DURABLE = "PostgreSQL", "each commit durable"


@dataclass(frozen=True)
class Peer:
    """One contestant; ``script`` is its file in ``scripts``."""

    name: str
    kind: str
    script: str
    place: str  # where it keeps its tasks: a name of benchmarks.peers.measuring.place
    server: str
    packages: tuple[str, ...]  # what pip is asked for
    modules: tuple[str, ...]  # what Python finds when they are installed
    note: str

    @property
    def distribution(self) -> str:
        """The package whose version is told."""
        return self.packages[0].partition("[")[0]


PEERS = (
    Peer(
        name="Celery",
        kind=QUEUE,
        script="with_celery.py",
        place="redis",
        server="Redis",
        packages=("celery", "redis"),
        modules=("celery", "redis"),
        note="in memory only; one worker of 1 or 8 processes; many: `group`",
    ),
    Peer(
        name="procrastinate",
        kind=QUEUE,
        script="with_procrastinate.py",
        place="postgres",
        server=POSTGRESQL,
        packages=("procrastinate", "psycopg[binary]"),
        modules=("procrastinate", "psycopg", "psycopg_pool"),
        note=f"{DURABLE}; NOTIFY; one worker of 1 or 8 at a time; many: `batch_defer`",
    ),
    Peer(
        name="django-tasks-db",
        kind=QUEUE,
        script="with_django_tasks_db.py",
        place="postgres",
        server=POSTGRESQL,
        packages=("django-tasks-db[compat]", "psycopg[binary]"),
        modules=("django_tasks", "django_tasks_db", "psycopg"),
        note=f"{DURABLE}; a look each second; 1 or 8 workers, as one does a task at a time; many: in one transaction",
    ),
    Peer(
        name="kazoo Election",
        kind=ELECTION,
        script="with_kazoo.py",
        place="zookeeper",
        server="ZooKeeper",
        packages=("kazoo",),
        modules=("kazoo",),
        note="each change durable; one server, ticks of 1 s, sessions of 2 s",
    ),
    Peer(
        name="advisory lock by psycopg",
        kind=ELECTION,
        script="with_advisory_lock.py",
        place="postgres",
        server=POSTGRESQL,
        packages=("psycopg[binary]",),
        modules=("psycopg",),
        note="no term: the server sees the connection end, which it does not when a host or a network is lost",
    ),
)

# Beside the dispenser and timers.
WORKER_PEERS = (
    Peer(
        name="huey on Redis",
        kind=WORKERS,
        script="workers_huey.py",
        place="redis",
        server="Redis",
        packages=("huey", "redis"),
        modules=("huey", "redis"),
        note="in memory only; one consumer of 8 processes; looks for what is due once a second",
    ),
    Peer(
        name="huey on SQLite",
        kind=WORKERS,
        script="workers_huey.py",
        place="folder",
        server="SQLite",
        packages=("huey",),
        modules=("huey",),
        note="a file, not synchronised at each commit; one consumer of 8 processes; once a second",
    ),
    Peer(
        name="Celery",
        kind=WORKERS,
        script="workers_celery.py",
        place="redis",
        server="Redis",
        packages=("celery", "redis"),
        modules=("celery", "redis"),
        note="in memory only; one worker of 8 processes; a task with an ETA waits in the worker",
    ),
    Peer(
        name="procrastinate",
        kind=WORKERS,
        script="workers_procrastinate.py",
        place="postgres",
        server=POSTGRESQL,
        packages=("procrastinate", "psycopg[binary]"),
        modules=("procrastinate", "psycopg", "psycopg_pool"),
        note=f"{DURABLE}; 8 workers; look for what is due every 5 s",
    ),
)

# Beside locks.
LOCK_PEERS = (
    Peer(
        name="redis-py Lock",
        kind=LOCK,
        script="with_redis_lock.py",
        place="redis",
        server="Redis",
        packages=("redis",),
        modules=("redis",),
        note="in memory only; renewed by nobody; polls every 0.1 s; no order",
    ),
    Peer(
        name="kazoo Lock",
        kind=LOCK,
        script="with_kazoo_lock.py",
        place="zookeeper",
        server="ZooKeeper",
        packages=("kazoo",),
        modules=("kazoo",),
        note="each change durable; one server",
    ),
    Peer(
        name="advisory lock by psycopg",
        kind=LOCK,
        script="with_advisory_locks.py",
        place="postgres",
        server=POSTGRESQL,
        packages=("psycopg[binary]",),
        modules=("psycopg",),
        note="in memory only; a session for each waiter; nothing told of a lost host",
    ),
)

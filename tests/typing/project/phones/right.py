"""Code without type errors; each ``assert_type`` states the inferred type."""

import datetime
from datetime import timedelta
from typing import assert_type

from django.db import transaction

from phones.models import Modem, Phone
from resourcepool import Resource, ResourceLease, release_on_sigterm
from resourcepool.contrib.cache_lock import cache_lock
from resourcepool.elections import Election, Leader, Term
from resourcepool.locks import Barrier, Channel, Condition, Hold, Lock, RWLock, Semaphore
from resourcepool.models import Pool, Proxy
from resourcepool.queues import HeldQueue, QueueServer
from resourcepool.taskqueue import Assigned, RunningTask, TaskDispenser, handler, submit, timers


def pools() -> None:
    assert_type(Phone.pool, Pool[Phone])
    assert_type(Modem.pool, Pool[Modem])
    assert_type(Phone.pool.acquire(), ResourceLease[Phone])
    assert_type(Phone.pool.acquire(wait=False), ResourceLease[Phone] | None)
    assert_type(Phone.pool.acquire_many(2, timeout=10), list[ResourceLease[Phone]])
    assert_type(Phone.pool.acquire_many(2, wait=False), list[ResourceLease[Phone]] | None)
    assert_type(Phone.pool.adopt(17, 4, ttl=20), ResourceLease[Phone])
    Modem.pool.acquire(port=[80, 3128], tags="fast eu", in_use=False, strategy="random", priority=-1)


def report(lease: ResourceLease[Phone]) -> None:
    print(lease.fence, lease.holder, lease.is_held, lease.remaining, lease.resource.number)


def leases(pool: Pool[Phone]) -> None:
    release_on_sigterm()
    with pool.lease(timeout=30, ttl=timedelta(minutes=2), number="1", on_lost=report) as lease:
        assert_type(lease, ResourceLease[Phone])
        assert_type(lease.resource, Phone)
        assert_type(lease.resource.call(), bool)
        with transaction.atomic(), lease.guard():
            lease.ensure_held()
        lease.fix("banned", timeout=5)
        lease.quarantine("broken")
    lease.hand_over("host-2", ttl=20)


async def readme() -> None:
    lease = await Proxy.pool.aacquire()
    print(lease.resource.url)
    await lease.arelease()
    async with Phone.pool.alease(timeout=30) as other:
        assert_type(other, ResourceLease[Phone])
    assert_type(await Phone.pool.aacquire(wait=False), ResourceLease[Phone] | None)
    assert_type(await Phone.pool.aacquire_many(2), list[ResourceLease[Phone]])


def locks() -> None:
    with Lock("report", ttl=30, timeout=timedelta(seconds=5)) as held:
        assert_type(held, Hold)
    assert_type(Lock("report").acquire(timeout=-1), Hold | None)
    with Semaphore("licence", 5), RWLock("catalogue", readers=3, timeout=2).read():
        pass
    with cache_lock("report", timeout=30, blocking_timeout=5):
        pass
    condition = Condition(Lock("orders"))
    assert_type(condition.wait(timeout=5), bool)
    assert_type(Barrier("import").wait(60), bool)


def channels() -> None:
    assert_type(Channel("config", kept=timedelta(days=1)).publish({"level": 3}), int)
    for message in Channel("config").subscribe("indexer", from_="start", timeout=5):
        message.done()
    Channel("config").subscribe(from_=datetime.datetime.now(datetime.UTC))


def elections() -> None:
    election = Election("reports", ttl=60, lock_delay=timedelta(seconds=5))
    assert_type(election.try_now(), Term | None)
    assert_type(election.leader(), Leader | None)
    with election.campaign(timeout=5) as term:
        assert_type(term.is_leader, bool)


def queues() -> None:
    with QueueServer("orders", weight=2, labels={"zone": "eu"}, limit=None) as server:
        for queue in server.queues():
            assert_type(queue, HeldQueue)
            queue.skip_for(1)


def dispenser() -> None:
    reviews = TaskDispenser("reviews", bucket_ttl=timedelta(minutes=10))
    reviews.add_many({101: 5.0})
    assert_type(reviews.assign_tasks(20, worker="alice"), list[Assigned])


@handler("Create", max_runtime=timedelta(minutes=10))
def create(task: RunningTask) -> None:
    with transaction.atomic(), task.guard():
        print(task.params["size"])


@timers.on("order.timeout", max_runtime=60)
def expire(timer: timers.RunningTimer) -> bool:
    return bool(timer.payload)


def tasks() -> None:
    submit("oracle", "Create", {"size": 8000}, key="req-42")
    timers.schedule("order-42", after=timedelta(minutes=30), topic="order.timeout", if_exists="keep")
    timers.schedule("nightly", cron="30 2 * * *", topic="report", catch_up="skip")


class Line(Resource[Phone]):
    """Holds a phone."""

    model = Phone
    occupation_delta = timedelta(minutes=2)
    acquire_timeout = 5

    def is_valid(self) -> bool:
        return self.o.call()


class AnyLine(Resource):
    """Holds a phone, whose type the checkers do not know."""

    model = Phone

    def is_valid(self) -> bool:
        return bool(self.o.anything)

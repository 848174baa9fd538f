"""Code with type errors: beside each line the error codes of mypy, then of pyright."""

from phones.models import Modem, Phone
from resourcepool.elections import Election
from resourcepool.locks import Channel, Lock, Lokc, Semaphore  # attr-defined | reportAttributeAccessIssue
from resourcepool.models import Pool
from resourcepool.taskqueue import TaskDispenser, timers


def pools() -> None:
    Phone.pool.acquire(timout=3)  # call-overload | reportArgumentType reportCallIssue
    Phone.pool.acquire(timeout="3")  # call-overload | reportArgumentType reportCallIssue
    Phone.pool.acquire(strategy="spred")  # call-overload | reportArgumentType reportCallIssue
    Phone.pool.acquire(wait=False).release()  # union-attr | reportOptionalMemberAccess
    Phone.pool.acquire_many(2, prority=1)  # call-overload | reportArgumentType reportCallIssue
    Phone.pool.acquire_many("2")  # call-overload | reportArgumentType reportCallIssue
    Phone.pool.adopt(17, 4, timeout=3)  # call-arg | reportCallIssue
    Pool(tll=3)  # call-arg | reportCallIssue
    Pool(strategy="spred")  # arg-type | reportArgumentType
    modem: Pool[Modem] = Phone.pool  # arg-type | reportAssignmentType
    print(modem)
    with Phone.pool.lease(timout=3) as lease:  # arg-type | reportArgumentType
        lease.resource.nonsense  # attr-defined | reportAttributeAccessIssue
        lease.relaese()  # attr-defined | reportAttributeAccessIssue
        lease.resource.call("now")  # call-arg | reportCallIssue
        lease.fix("banned", timeout="3")  # arg-type | reportArgumentType
    Phone.pool.leese()  # attr-defined | reportAttributeAccessIssue


async def asyncio() -> None:
    await Phone.pool.aacquire(timout=3)  # call-overload | reportArgumentType reportCallIssue
    (await Phone.pool.aacquire(wait=False)).fence  # union-attr | reportOptionalMemberAccess
    async with Phone.pool.alease(ttl="60") as lease:  # arg-type | reportArgumentType
        lease.resource.nonsense  # attr-defined | reportAttributeAccessIssue
    Phone.pool.aacquire().resource  # attr-defined | reportAttributeAccessIssue


def others() -> None:
    Lock("report", ttl="30")  # arg-type | reportArgumentType
    Lock("report", timout=3)  # call-arg | reportCallIssue
    Lock("report").acquire(timeout="3")  # arg-type | reportArgumentType
    Lock("report").acquire().ensure_held()  # union-attr | reportOptionalMemberAccess
    Semaphore("licence", "5")  # arg-type | reportArgumentType
    Election("reports").campaign(timeout="5")  # arg-type | reportArgumentType
    Channel("config").subscribe(from_="begin")  # arg-type | reportArgumentType
    TaskDispenser("reviews", bucket_ttl="10 min")  # arg-type | reportArgumentType
    timers.schedule("order-42", after="30 min", topic="order.timeout")  # arg-type | reportArgumentType
    timers.schedule("o-42", after=30, topic="order.timeout", if_exists="raise")  # arg-type | reportArgumentType
    timers.on("order.timeout", max_runtime="1 min")  # arg-type | reportArgumentType

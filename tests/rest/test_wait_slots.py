"""The number of waiting requests of a process is limited, so that a renewal always gets a thread."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

from resourcepool.models import Proxy, Ticket
from tests.app.rows import hold, new
from tests.eventually import InBackground, eventually
from tests.rest.conftest import Caller

THREADS = 4


def in_line(count: int) -> Callable[[], bool]:
    return lambda: Ticket.objects.waiting().count() == count


@pytest.fixture
def boss(transactional_db: None) -> User:
    return User.objects.create_superuser("root", password="pw")


def test_beyond_the_limit_it_is_answered_at_once_and_has_no_place_in_line(boss: User) -> None:
    lease = hold(new(Proxy))
    first = InBackground(lambda: Caller(boss).got("pools/proxy/acquire", timeout=25))
    eventually(in_line(1))
    for address in ("pools/proxy/acquire", "locks/nightly/acquire"):
        Caller(boss).post("locks/nightly/acquire")
        answer = Caller(boss).post(address, timeout=25)
        assert (answer.status_code, answer.json()["error"]) == (423, "TooManyWait")
        assert "REST_WAITS" in answer.json()["detail"]
    assert in_line(1)()
    lease.release()
    first.result()


def test_what_is_free_is_granted_beyond_the_limit(boss: User, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "REST_WAITS": 0}
    new(Proxy)
    Caller(boss).got("pools/proxy/acquire", timeout=25)
    assert Caller(boss).post("pools/proxy/acquire", timeout=25).status_code == 423


def test_who_has_waited_makes_room_for_the_next(boss: User) -> None:
    lease = hold(new(Proxy))
    for _ in range(2):
        next_one = InBackground(lambda: Caller(boss).got("pools/proxy/acquire", timeout=25))
        eventually(in_line(1))
        lease.release()
        Caller(boss).got("leases/release", 204, lease=next_one.result()["lease"])
        lease = hold(Proxy.objects.get())
    lease.release()


def test_who_may_not_wait_is_not_told_to_come_back_at_the_same_moment_as_others(
    boss: User, settings: Any
) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "REST_WAITS": 0}
    hold(new(Proxy))
    told = {int(Caller(boss).post("pools/proxy/acquire", timeout=20)["Retry-After"]) for _ in range(20)}
    assert len(told) > 1
    assert told <= {1, 2, 3, 4, 5}


def test_in_a_web_server_of_one_thread_nobody_waits(boss: User) -> None:
    hold(new(Proxy))
    caller = Caller(boss)
    caller.client.defaults["wsgi.multithread"] = False
    said = caller.post("pools/proxy/acquire", timeout=25).json()
    assert said["error"] == "TooManyWait"
    assert "one thread" in said["detail"]


class FewThreads(ThreadedWSGIServer):
    """A web server with a number of threads, like gunicorn."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), WSGIRequestHandler, connections_override={})
        self.pool = ThreadPoolExecutor(THREADS)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.pool.submit(self.process_request_thread, request, client_address)


@pytest.fixture
def address(boss: User) -> Iterator[str]:
    with FewThreads() as server:
        server.set_app(WSGIHandler())
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()
        server.pool.shutdown()


def post(address: str, **sent: Any) -> tuple[int, Any]:
    """Send a request; return the status and the response."""
    headers = {"Authorization": f"Basic {b64encode(b'root:pw').decode()}", "Content-Type": "application/json"}
    try:
        with urlopen(Request(address, json.dumps(sent).encode(), headers), timeout=60) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except HTTPError as error:
        return error.code, json.loads(error.read())


def wait_at(address: str) -> tuple[int, Any]:
    return post(f"{address}/pools/proxy/acquire", timeout=25)


def test_waits_of_one_user_leave_a_thread_for_renewals(address: str, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "REST_WAITS": THREADS - 1}
    new(Proxy)
    held = post(f"{address}/pools/proxy/acquire")[1]["lease"]
    waits = [InBackground(wait_at, address) for _ in range(THREADS)]
    eventually(in_line(THREADS - 1))
    for _ in range(2):
        assert post(f"{address}/leases/renew", lease=held)[0] == 200
    assert in_line(THREADS - 1)()  # they still wait
    post(f"{address}/leases/release", lease=held)
    for _ in range(THREADS - 1):
        got = eventually(lambda: next((one for one in waits if not one.is_alive() and is_granted(one)), None))
        waits.remove(got)
        post(f"{address}/leases/release", lease=got.result()[1]["lease"])


def is_granted(wait: InBackground) -> bool:
    return wait.result()[0] == 201

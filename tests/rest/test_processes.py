"""Real processes: programs that call the API alongside processes that lease in Python, and web servers that crash."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from resourcepool.leases import shutdown
from resourcepool.models import Proxy, Ticket
from tests.app.rows import columns, expire, hold, new, several
from tests.eventually import eventually
from tests.rest.conftest import Caller
from tests.spawned import Spawner

TIMES = 12
SERVERS, PYTHONS = 3, 2


def _boss() -> Caller:
    return Caller(User.objects.get(username="root"))


def _add_one(file: str) -> None:
    number = int(Path(file).read_text())
    time.sleep(0.001)  # long enough for another process to interfere
    Path(file).write_text(str(number + 1))


def count_by_api(file: str) -> None:
    """Add one to the number in ``file``, again and again; each time a web server that waits and answers."""
    boss = _boss()
    for _ in range(TIMES):
        answer = boss.post("pools/proxy/acquire", timeout=25)
        while answer.status_code == 423:
            answer = boss.post("pools/proxy/acquire", timeout=25)
        _add_one(file)
        boss.got("leases/release", 204, lease=answer.json()["lease"])


def count_in_python(file: str) -> None:
    for _ in range(TIMES):
        with Proxy.pool.lease(timeout=60):
            _add_one(file)


def acquire_and_end(how: str) -> None:
    """Be a web server that grants a lease, prints the token, and exits."""
    print(json.dumps(_boss().got("pools/proxy/acquire", ttl=60)), flush=True)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)


def acquire_with_id(request_id: str) -> None:
    _boss().post("pools/proxy/acquire", timeout=25, request_id=request_id)


def acquire_while_it_ends() -> None:
    """Be a web server that exits after one of its threads got a lease, and before it responds."""
    release_all, in_time = shutdown.release_everything, threading.Event()
    read, answers = Proxy.for_holder, list[Any]()

    def read_late(row: Proxy) -> Any:
        threading.Thread(target=shutdown._end, args=(os.getpid(),)).start()
        in_time.wait(60)
        return read(row)

    def release_late(leases: list[Any]) -> None:
        in_time.set()
        answering.join(60)
        release_all(leases)

    shutdown.release_everything, Proxy.for_holder = release_late, read_late  # type: ignore[method-assign]
    answering = threading.Thread(target=lambda: answers.append(_boss().post("pools/proxy/acquire").status_code))
    answering.start()
    answering.join(60)
    print("answered", answers, flush=True)


def release(token: str) -> None:
    _boss().got("leases/renew", 200, lease=token)
    _boss().got("leases/release", 204, lease=token)


def test_programs_and_processes_count_exactly_under_the_only_row(
    root: Any, spawn: Spawner, tmp_path: Path
) -> None:
    new(Proxy)
    file = tmp_path / "counter"
    file.write_text("0")
    children = [spawn(count_by_api, str(file)) for _ in range(SERVERS)]
    children += [spawn(count_in_python, str(file)) for _ in range(PYTHONS)]
    for child in children:
        child.succeed(timeout=150)
    assert int(file.read_text()) == (SERVERS + PYTHONS) * TIMES


def test_a_lease_outlives_the_web_server_that_granted_it_and_any_other_renews_it(
    root: Any, spawn: Spawner
) -> None:
    rows = several(Proxy, 2)
    for how in ("ended", "killed"):
        child = spawn(acquire_and_end, how)
        got = json.loads(child.line('"lease"'))
        child.wait()
        row = next(one for one in rows if one.pk == got["id"])
        assert (columns(row)["holder"], columns(row)["fence"]) == (got["holder"], got["fence"])
        spawn(release, got["lease"]).succeed()
        assert columns(row)["holder"] == ""


def test_a_web_server_that_stood_still_takes_nothing_from_who_asked_another_again(
    root: Any, spawn: Spawner
) -> None:
    row = new(Proxy)
    lease = hold(row)
    child = spawn(acquire_with_id, "r-1")
    eventually(lambda: Ticket.objects.waiting().exists())
    child.send(signal.SIGSTOP)
    ticket = Ticket.objects.get()
    lease.release()  # to the stopped process
    got = root.got("pools/proxy/acquire", request_id="r-1")
    expire(ticket)
    child.send(signal.SIGCONT)
    eventually(lambda: Ticket.objects.exclude(pk=ticket.pk).exists())  # it has released its lease
    assert (columns(row)["fence"], columns(row)["holder"]) == (got["fence"], got["holder"])
    child.kill()


def test_what_a_web_server_releases_at_its_end_it_does_not_give_away(root: Any, spawn: Spawner) -> None:
    new(Proxy)
    assert "answered [503]" in spawn(acquire_while_it_ends).succeed()

"""Serves the admin once the run is over, so that you can look at the pool; and sweeps, so that there are charts."""

import secrets
import socket
import time
import urllib.error
import urllib.request
from importlib.util import find_spec

from django.contrib.auth import get_user_model
from rich.console import Console

from .processes import DemoError, Processes

USER = "demo"


def serve_admin(console: Console, processes: Processes) -> None:
    """Print address, user and a password that works for this run alone; return at Ctrl-C."""
    password, port = secrets.token_urlsafe(9), _free_port()
    user, _ = get_user_model().objects.get_or_create(username=USER)
    user.is_staff = user.is_superuser = True
    user.set_password(password)
    user.save()
    _start(processes, "admin", "runserver", "--noreload", "--insecure", f"127.0.0.1:{port}")
    url = f"http://127.0.0.1:{port}/admin/"
    _wait_for(url, processes)
    _start(processes, "sweep", "resourcepool_sweep", "--every", "60")
    console.print(f"\n[bold]The admin[/]: {url}   user: {USER}   password: {password}")
    console.print(f"The dashboard: {url}resourcepool/dashboard/")
    if find_spec("rest_framework"):
        console.print(f"The REST API:  curl -u {USER}:{password} http://127.0.0.1:{port}/api/pools")
    console.print("A few crawlers go on, so that there is something to see. Ctrl-C ends it all.")
    try:
        while True:
            processes.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        console.print("\nStopping ...")


def _start(processes: Processes, name: str, *command: str) -> None:
    processes.start(name, "django", *command, "--settings=project.settings", "--pythonpath=.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, processes: Processes, seconds: float = 20) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        processes.check()
        try:
            direct.open(url, timeout=5).close()
        except urllib.error.HTTPError as error:
            raise DemoError(f"the admin answered with {error.code} {error.reason}") from error
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise DemoError(f"the admin did not answer within {seconds:g} s")

"""A database server behind a process that can be stopped: connections are accepted nevertheless."""

import signal
import sys
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from tests.relay import Relay
from tests.spawned import Child

GO = {signal.SIGUSR2}  # blocked before it can come, and waited for


def forward(host: str, port: int) -> None:
    relay = Relay(host, port)
    print(f"port {relay.port}", flush=True)
    relay.serve()


class Server:
    """The database server, seen through a process that can be stopped; connections are accepted nevertheless."""

    def __init__(self, child: Child) -> None:
        self._child = child
        port = child.line("port ").split()[1]
        login = urlsplit(child_url := self._url(child)).netloc.rpartition("@")[0]
        self.url = urlsplit(child_url)._replace(netloc=f"{login}@127.0.0.1:{port}").geturl()

    @staticmethod
    def _url(child: Child) -> str:
        name = connection.settings_dict["NAME"]
        return urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()

    def freeze(self) -> None:
        self._child.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._child.send(signal.SIGCONT)


def say(told: str) -> None:
    sys.stdout.write(told.replace("\n", " ") + "\n")  # in one piece, for several threads do so

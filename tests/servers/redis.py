"""A private Redis, as a broker and to measure beside."""

import contextlib
import shutil
import signal
from collections.abc import Iterator
from typing import Any

from tests.servers.server import Server, ServerMissing


class Redis(Server):
    """A Redis server that keeps nothing on disk; it also listens on a socket in its folder."""

    name = "Redis"
    driver = "redis"
    users = ("redis", "nobody")
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    def __init__(self, **options: Any) -> None:
        # Debian's redis-tools has the server under another name, and unlike redis-server it starts no service.
        found = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        if found is None:
            raise ServerMissing("redis-server is not installed")
        self.program = found
        super().__init__(**options)

    def create(self) -> None:
        """Nothing is kept."""

    def command(self) -> list[str]:
        # The program looks at the name it is called by.
        words = f"--port {self.port} --bind 127.0.0.1 --dir {self.folder} --unixsocket {self.folder}/socket"
        return ["bash", "-c", f'exec -a redis-server {self.program} --save "" {words}', *self.options]

    def connect(self) -> Any:
        import redis

        client = redis.Redis.from_url(self.url)
        client.ping()
        return client

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """Yield the URL of one; raises ServerMissing."""
    with Redis() as server:
        yield server.url

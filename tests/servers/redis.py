"""A private Redis, as a broker and to measure beside: on a free port, in a temporary folder, gone afterwards."""

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator

from tests.servers.server import ServerMissing, free_port

START_TIMEOUT = 20.0  # seconds


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """Yield its URL; raises ServerMissing."""
    # Debian's redis-tools has the server under another name, and unlike redis-server it starts no service.
    program, port = shutil.which("redis-server") or shutil.which("redis-check-rdb"), free_port()
    if program is None:
        raise ServerMissing("redis-server is not installed")
    with tempfile.TemporaryDirectory(prefix="resourcepool-redis-") as folder:
        process = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
            executable=program,
            stdout=subprocess.DEVNULL,
        )
        try:
            url = f"redis://127.0.0.1:{port}/0"
            _wait_for(url)
            yield url
        finally:
            process.terminate()
            process.wait()


def _wait_for(url: str) -> None:
    import redis

    deadline = time.monotonic() + START_TIMEOUT
    with redis.Redis.from_url(url) as client:
        while True:
            with contextlib.suppress(redis.ConnectionError):
                client.ping()
                return
            if time.monotonic() > deadline:
                raise ServerMissing(f"redis-server did not answer within {START_TIMEOUT:g} s")
            time.sleep(0.02)

"""The target site, shop.example: slow pages, a short temper, and a log that nobody else writes to.

It knows a proxy by the address a request comes from, as any site does, and turns one that asks too often away for
a while. The log (see witness.py) is the demo's independent witness: every line is written and flushed at once.
"""

import argparse
import json
import threading
import time
from collections import defaultdict, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

from .processes import exit_on_sigterm, write_port_file

WINDOW, LIMIT = 4.0, 15  # more than 15 requests through one proxy within 4 seconds is greedy
BAN = 20.0  # seconds


class Shop(ThreadingHTTPServer):
    """Counts and logs the requests; thread-safe."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, log: Path) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.file = log.open("a", encoding="utf-8")
        self.opened = time.monotonic()
        self.lock = threading.Lock()
        self.numbers = count(1)
        self.recent: dict[str, deque[float]] = defaultdict(deque)
        self.banned_until: dict[str, float] = {}

    def server_close(self) -> None:
        super().server_close()
        self.file.close()

    def log(self, event: str, **fields: object) -> float:
        with self.lock:
            now = time.monotonic() - self.opened
            self.file.write(json.dumps({"at": round(now, 6), "event": event, **fields}) + "\n")
            self.file.flush()
        return now

    def is_welcome(self, proxy: str, now: float) -> bool:
        with self.lock:
            if now < self.banned_until.get(proxy, 0):
                return False
            recent = self.recent[proxy]
            recent.append(now)
            while recent[0] < now - WINDOW:
                recent.popleft()
            if len(recent) <= LIMIT:
                return True
            self.banned_until[proxy] = now + BAN
        self.log("banned", proxy=proxy)
        return False


class Page(BaseHTTPRequestHandler):
    """GET /page/17 takes 50 to 300 ms, always the same for the same page. POST /killed/NAME makes a note."""

    server: Shop

    def do_GET(self) -> None:
        proxy, number = self.client_address[0], next(self.server.numbers)
        delay = 0.05 + sum(self.path.encode()) * 37 % 251 / 1000
        fence = self.headers.get("X-Lease-Fence")
        now = self.server.log(
            "start",
            request=number,
            proxy=proxy,
            crawler=self.headers.get("X-Crawler", "?"),
            fence=int(fence) if fence else None,
            path=self.path,
            delay=delay,
        )
        status = 200 if self.server.is_welcome(proxy, now) else 403
        if status == 200:
            time.sleep(delay)
        # Before the answer leaves: whoever gets the proxy next may be here before this thread runs again.
        self.server.log("end", request=number, status=status)
        self.answer(status, f"<h1>{self.path}</h1>" if status == 200 else "Too greedy: come back later.")

    def do_POST(self) -> None:
        self.server.log("killed", crawler=self.path.removeprefix("/killed/"))
        self.answer(204, "")

    def answer(self, status: int, text: str) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())
        except OSError:
            pass  # a killed crawler no longer listens

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Keep quiet: the log above is the only one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    arguments = parser.parse_args()
    exit_on_sigterm()
    with Shop(arguments.log) as shop:
        write_port_file(arguments.port_file, shop.server_port)
        shop.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()

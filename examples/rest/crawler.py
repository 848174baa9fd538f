"""Fetches pages through a proxy that is leased over REST: the standard library alone, a model for other languages.

``python crawler.py URL ..``, with API (``https://shop.example/api``) and AUTH (``Token 176e..``) in its environment.
"""

import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

NO_ANSWER = 0
AGAIN = (NO_ANSWER, 423, 429, 500, 502, 503, 504)  # nothing is wrong with the request: send it again


class LeaseLost(Exception):
    """The lease is over, or may be: the resource must not be used any more."""


def call(address: str, wait: float = 10.0, **sent: Any) -> tuple[int, Any]:
    """Return the status and the body of the answer; ``NO_ANSWER``: none came within ``wait`` seconds."""
    headers = {"Authorization": os.environ["AUTH"], "Content-Type": "application/json"}
    request = urllib.request.Request(f"{os.environ['API']}/{address}", json.dumps(sent).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=wait) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return NO_ANSWER, str(error)


class Lease:
    """A resource, renewed by a thread until it is released or lost."""

    def __init__(self, pool: str, ttl: float = 60.0, **where: Any) -> None:
        """Wait until one that matches comes free."""
        # If an answer is lost, the answer to the same id is about the same lease.
        options = {"where": where, "ttl": ttl, "timeout": 20, "request_id": uuid.uuid4().hex}
        while True:
            sent_at = time.monotonic()
            status, answer = call(f"pools/{pool}/acquire", 40, **options)
            if status == 201:
                break
            if status not in AGAIN:
                raise RuntimeError(f"{status}: {answer}")
            print(f"waiting: {status} {answer}", file=sys.stderr)
            time.sleep(random.uniform(1, 5))
        self.resource, self.ttl, self._token = answer["resource"], ttl, answer["lease"]
        self._ends_at = sent_at + answer["expires_in"]
        self._is_over = threading.Event()
        pause = self._renew()  # it counts from when it was asked for, and may have waited in line since
        threading.Thread(target=self._keep, args=(pause,), daemon=True).start()

    def ensure_held(self) -> None:
        """Raise LeaseLost if it is over, or may be: to be called before each use."""
        if self._is_over.is_set() or time.monotonic() >= self._ends_at:
            raise LeaseLost

    def release(self) -> None:
        """Give it back."""
        self._is_over.set()
        call("leases/release", lease=self._token)

    def _keep(self, pause: float) -> None:
        while not self._is_over.wait(pause):
            pause = self._renew()

    def _renew(self) -> float:
        """Renew it; return in how many seconds to do so again."""
        sent_at = time.monotonic()
        status, answer = call("leases/renew", lease=self._token)
        if status == 200:
            self._ends_at = sent_at + answer["expires_in"]
            return self.ttl / 3
        if status not in AGAIN:  # 409; or a permission was taken away
            self._is_over.set()
        return 1.0


def main() -> None:
    """Fetch each page."""
    lease = Lease("proxy")
    try:
        proxies = urllib.request.ProxyHandler(dict.fromkeys(("http", "https"), lease.resource["url"]))
        opener = urllib.request.build_opener(proxies)
        for url in sys.argv[1:]:
            lease.ensure_held()
            with opener.open(url, timeout=10) as page:
                print(url, len(page.read()), flush=True)
    finally:
        lease.release()


if __name__ == "__main__":
    main()

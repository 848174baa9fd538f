"""One crawler process: lease a proxy, fetch a few pages through it, give it back, begin again. The code to copy.

`python -m examples.demo.crawler crawler-01 http://shop.example:8000` is one; the demo starts a dozen.
"""

import argparse
import logging
import random
import time

import django
import requests

django.setup()

from django.db import transaction  # noqa: E402

from examples.demo.models import Page  # noqa: E402
from resourcepool import ResourceLease, release_on_sigterm  # noqa: E402
from resourcepool.exceptions import AcquireTimeout, LeaseLost  # noqa: E402
from resourcepool.models import Proxy  # noqa: E402

log = logging.getLogger(__name__)


class Crawler:
    """Fetches for ever. `pause` is the time between two pages, in seconds."""

    def __init__(self, name: str, site: str, pages_per_lease: int, pause: float) -> None:
        self.name = name
        self.site = site
        self.pages_per_lease = pages_per_lease
        self.pause = pause

    def run(self) -> None:
        while True:
            try:
                self.use_one_proxy()
            except AcquireTimeout:
                log.info("No proxy was free for 30 seconds; I ask again.")
            except LeaseLost as error:
                log.warning("%s I begin again with another proxy.", error)
            except requests.RequestException as error:
                log.warning("A page could not be fetched: %s", error)

    def use_one_proxy(self) -> None:
        # cooldown: a request of ours that is cut off in the middle may still be running at the site.
        with Proxy.pool.lease(timeout=30, ttl=3, cooldown=0.5, holder=self.name) as lease:
            for _ in range(self.pages_per_lease):
                self.fetch(lease, f"{self.site}/page/{random.randrange(10_000)}")
                time.sleep(self.pause)

    def fetch(self, lease: ResourceLease, url: str) -> None:
        lease.ensure_held()
        headers = {"X-Crawler": self.name, "X-Lease-Fence": str(lease.fence)}
        try:
            response = requests.get(url, proxies={"http": lease.resource.url}, headers=headers, timeout=2)
        except requests.exceptions.ProxyError:
            lease.fix("does not answer")
            return
        if response.status_code in (403, 429):
            self.pause += 0.3
            lease.fix("banned by shop.example")  # quarantines it; from here on the lease is for another one
            return
        response.raise_for_status()
        with transaction.atomic(), lease.guard():
            Page.objects.create(url=url, proxy=str(lease.resource), fence=lease.fence, body=response.text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("site")
    parser.add_argument("--pages-per-lease", type=int, default=6)
    parser.add_argument("--pause", type=float, default=0.15)
    release_on_sigterm()
    Crawler(**vars(parser.parse_args())).run()


if __name__ == "__main__":
    main()

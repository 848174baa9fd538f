"""The crawler of `--broken`: takes any proxy at random, as if nobody else were there. The witness must notice."""

import argparse
import random
import time

import django
import requests

django.setup()

from resourcepool.models import Proxy  # noqa: E402


def crawl(name: str, site: str) -> None:
    urls = [proxy.url for proxy in Proxy.objects.all()]
    while True:
        url = random.choice(urls)
        for _ in range(6):
            page = f"{site}/page/{random.randrange(10_000)}"
            requests.get(page, proxies={"http": url}, headers={"X-Crawler": name}, timeout=5)
            time.sleep(0.15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("site")
    crawl(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()

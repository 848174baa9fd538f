"""redis-py's Lock: renewed by nobody, in memory only."""

import os

from lock_peer import Make, Pair, main
from redis import Redis


def client() -> Make:
    redis = Redis.from_url(os.environ["URL"])

    def make(name: str) -> Pair:
        lock = redis.lock(name, timeout=30)
        return lock.acquire, lock.release

    return make


if __name__ == "__main__":
    main(client)

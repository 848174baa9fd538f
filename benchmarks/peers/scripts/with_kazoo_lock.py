"""kazoo's Lock on ZooKeeper."""

import os

from kazoo.client import KazooClient
from lock_peer import Make, Pair, main


def client() -> Make:
    zookeeper = KazooClient(os.environ["URL"], timeout=30)
    zookeeper.start()

    def make(name: str) -> Pair:
        lock = zookeeper.Lock(f"/{name}")
        return lock.acquire, lock.release

    return make


if __name__ == "__main__":
    main(client)

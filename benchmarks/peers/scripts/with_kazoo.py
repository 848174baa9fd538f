"""kazoo's Election on ZooKeeper."""

import os
import threading
from collections.abc import Callable

from election_peer import main
from kazoo.client import KazooClient

SESSION = 2.0  # seconds, as long as a term of ours


def connected() -> KazooClient:
    client = KazooClient(os.environ["URL"], timeout=SESSION)
    client.start()
    return client


def lead(begun: Callable[[], None], stopped: threading.Event) -> None:
    client = connected()

    def leading() -> None:
        begun()
        stopped.wait()

    client.Election("/leader").run(leading)
    client.stop()


def standbys() -> int:
    client = connected()
    try:
        return len(client.Election("/leader").contenders()) - 1
    finally:
        client.stop()


if __name__ == "__main__":
    main(lead, standbys)

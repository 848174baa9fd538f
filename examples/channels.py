"""`python -m examples.channels`, from the top of the repository: a subscriber is killed, and the next one goes on.

A few seconds, in a database of its own that is removed afterwards.
docs/reference/channels.md says what happens and why.
"""

import sys
import time

from examples.trial import own_database, processes, set_up, until

COUNT = 12


def main() -> None:
    """Publish, kill the process that reads, and show that the other one reads the rest in order."""
    with own_database():
        from resourcepool.locks import Channel
        from resourcepool.models import Subscription

        channel = Channel("config")
        channel.subscribe("indexer", ttl=2).close()
        with processes("examples.channels", "reader-1", "reader-2") as readers:
            rows = Subscription.objects.filter(name="indexer")
            until(lambda: rows.held().exists(), "somebody to read")
            for level in range(1, COUNT + 1):
                channel.publish({"level": level})
                if level == COUNT // 2:
                    until(lambda: rows.filter(cursor__gt=0).exists(), "a message to be read")
                    holder = rows.values_list("holder", flat=True).get()
                    reads = next(name for name, reader in readers.items() if f"/{reader.pid}/" in holder)
                    readers[reads].kill()
                    readers[reads].wait()
                    print(f"kill -9 {reads}, which read the channel")
            until(lambda: rows.filter(cursor=COUNT).exists(), "the other one to read the rest")


def read() -> None:
    """Read the channel beside another process, until killed."""
    set_up()
    from django.db import transaction

    from resourcepool.locks import Channel

    for message in Channel("config").subscribe("indexer", ttl=2):
        with transaction.atomic():
            time.sleep(0.05)  # the work: whatever is to be committed together with the cursor
            message.done()
        print(f"  {sys.argv[1]}  message {message.number}: {message.payload}", flush=True)


if __name__ == "__main__":
    read() if len(sys.argv) > 1 else main()

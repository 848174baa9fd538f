"""The guards of channels: one order, nothing passed over in silence, and a cursor that only its reader moves."""

from tests.guards.mutation import Mutation

PUBLISHING, POSITION, SUBSCRIPTION, POLLING, MODELS, SUBSCRIBER = (
    f"locks/channels/{name}.py"
    for name in ("publication", "position", "subscription", "poller", "models", "subscriber")
)
PUBLISHES = ("tests/locks/channels/test_publishing.py",)
READS = (
    "tests/locks/channels/test_subscribing.py",
    "tests/locks/channels/test_done.py",
    "tests/locks/channels/test_subscription.py",
)
REMOVED = ("tests/locks/channels/test_removed_meanwhile.py",)
ASYNC = ("tests/locks/channels/test_asyncio.py",)
OPERATES = ("tests/locks/channels/test_operators.py",)

BLOCK, TAKES = "with transaction.atomic(using=self._using):", "number = self._next_number(connection)"

CHANNELS = (
    Mutation(
        "channels: one that stood still as it began waits for its turn again",
        SUBSCRIPTION,
        "            return None\n        row: Subscription",
        "            pass\n        row: Subscription",
        READS,
    ),
    Mutation(
        "channels: a fork leaves its parent's subscription alone",
        SUBSCRIBER,
        "            return  # in a fork",
        "            pass  # a fork ends",
        ("tests/locks/channels/test_processes.py",),
    ),
    Mutation(
        "channels: the number is taken in the message's transaction",
        PUBLISHING,
        f"            {BLOCK}\n                {TAKES}\n",
        f"            {TAKES}\n            {BLOCK}\n",
        PUBLISHES,
    ),
    Mutation(
        "channels: a lost commit is looked for",
        PUBLISHING,
        "if self._number is not None and self._was_published(self._number):",
        "if False:",
        PUBLISHES,
    ),
    Mutation(
        "channels: what is found is one's own",
        PUBLISHING,
        '"number": number, "publisher": self._publisher}',
        '"number": number}',
        PUBLISHES,
    ),
    Mutation(
        "channels: a cursor is moved no further than what is published",
        "locks/channels/models.py",
        "min(int(to) - 1, newest)",
        "int(to) - 1",
        ("tests/locks/channels/test_operators.py",),
    ),
    Mutation(
        "channels: a full one is refused",
        PUBLISHING,
        "if least is None or number - least <= self._most:",
        "if True:",
        PUBLISHES,
    ),
    Mutation(
        "channels: a cursor is moved by its fence",
        SUBSCRIPTION,
        "filter(pk=self.pk, fence=self.fence)\n        return granted",
        "filter(pk=self.pk)\n        return granted",
        (*READS, *OPERATES),
    ),
    Mutation(
        "channels: no subscription outlives its channel",
        SUBSCRIPTION,
        ".select_for_update()",
        "",
        REMOVED,
        "mariadb",
    ),
    Mutation(
        "channels: nor one whose channel is gone",
        SUBSCRIPTION,
        "if last is None:",
        "if last is None and (last := 0):",
        REMOVED,
    ),
    Mutation(
        "channels: a cursor never goes back",
        SUBSCRIPTION,
        'forward = Greatest("cursor", Value(cursor))',
        "forward = Value(cursor)",
        READS,
    ),
    Mutation(
        "channels: a transaction that is tried again is not committed twice",
        POSITION,
        "is_once = is_atomic and is_in_hand",
        "is_once = False",
        READS,
    ),
    Mutation(
        "channels: a message of an earlier turn is not done in a later one",
        POSITION,
        "if turn != self._turn:",
        "if False:",
        READS,
    ),
    Mutation(
        "channels: without autocommit done() is no more than the transaction",
        POSITION,
        "connection.in_atomic_block or not connection.get_autocommit()",
        "connection.in_atomic_block",
        READS,
    ),
    Mutation(
        "channels: what an interrupted caller has not got is delivered once more",
        POSITION,
        "self._in_hand, self._is_miss_reported = 0, isinstance(error, MessagesMissed)",
        "pass",
        ("tests/locks/channels/test_interrupted_anywhere.py",),
    ),
    Mutation(
        "channels: one that an operator removed is not made again",
        SUBSCRIPTION,
        "if pk is None and self.is_durable and self._has_begun:",
        "if False:",
        READS,
    ),
    Mutation(
        "channels: what was read ahead under an older lease is dropped",
        POSITION,
        "        self._read.clear()",
        "        pass",
        OPERATES,
    ),
    Mutation(
        "channels: what was removed is told",
        POSITION,
        "if first > place.cursor + 1:",
        "if False:",
        READS,
    ),
    Mutation(
        "channels: a gap in the middle is told",
        POSITION,
        "if row[0] != number:  # the next query finds the rest",
        "if False:",
        READS,
    ),
    Mutation(
        "channels: what is told of is not lost with a cancelled call",
        POSITION,
        "        self._missing = first, last\n",
        "        raise self._messages_missed(first, last)\n",
        ASYNC,
    ),
    Mutation(
        "channels: a rollback undoes what is done",
        POSITION,
        "if not is_atomic:  # a rollback would undo it",
        "if True:",
        READS,
    ),
    Mutation(
        "channels: nothing is read in a transaction",
        POSITION,
        "if callers_blocks(connections[self._source.using]):",
        "if False:",
        READS,
    ),
    Mutation(
        "channels: one that was made again is noticed",
        POLLING,
        "if last > subscriber.last or made != subscriber.made:",
        "if last > subscriber.last:",
        READS,
    ),
    Mutation(
        "channels: the last look is at the channel",
        POSITION,
        "            if asks_database and not self._read:",
        "            if False:",
        READS,
    ),
    Mutation(
        "channels: a name comes free whatever fails at the end",
        SUBSCRIBER,
        "        lease._stop_renewing()  # first: if anything fails after this, it expires\n",
        "",
        READS,
    ),
    Mutation(
        "channels: a subscription that is read is not removed",
        MODELS,
        "lambda row: row.available()._raw_delete(row.db)",
        "lambda row: row._raw_delete(row.db)",
        OPERATES,
    ),
    Mutation(
        "channels: a moved cursor is taken from whoever reads",
        MODELS,
        'else cursor, "fence": F("fence") + 1}',
        'else cursor, "fence": F("fence")}',
        OPERATES,
    ),
)

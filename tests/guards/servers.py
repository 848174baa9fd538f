"""The guards of a server: what it may begin, hand over and rely on, from registering to leaving."""

from tests.guards.mutation import Mutation

HELD, MEMBERSHIP, SERVER = "queues/serving/held.py", "queues/serving/membership.py", "queues/serving/server.py"
REGISTERING = "queues/serving/registration.py"
HANDLES = ("tests/queues/serving/test_held.py", "tests/queues/test_guard.py")
MEMBERS = (
    "tests/queues/serving/test_membership.py",
    "tests/queues/serving/test_membership_judged_dead.py",
    "tests/queues/test_handing_over.py",
)
SERVERS = tuple(
    f"tests/queues/serving/test_server{end}.py" for end in ("", "_loop", "_stopping", "_judged_dead")
)

QUEUE_SERVERS = (
    Mutation(
        "queues: what is in hand is not handed over",
        MEMBERSHIP,
        "(queue.is_asked_for or queue.is_doubtful) and not queue.is_in_hand",
        "(queue.is_asked_for or queue.is_doubtful)",
        (*HANDLES, *SERVERS),
    ),
    Mutation(
        "queues: no work begins on what is asked for",
        MEMBERSHIP,
        "queue.is_held and not queue.is_asked_for",
        "queue.is_held",
        HANDLES,
    ),
    Mutation(
        "queues: old and new work on one queue do not meet",
        MEMBERSHIP,
        "all(old is queue and one.thread == hand.thread for one, old in others)",
        "all(one.thread == hand.thread for one, old in others)",
        MEMBERS,
    ),
    Mutation(
        "queues: two threads do not get one queue",
        MEMBERSHIP,
        "all(old is queue and one.thread == hand.thread for one, old in others)",
        "all(old is queue for one, old in others)",
        HANDLES,
    ),
    Mutation(
        "queues: a loop gets nothing that is in hand",
        MEMBERSHIP,
        "may = is_mine and not hand.is_loop",
        "may = is_mine",
        SERVERS,
    ),
    Mutation(
        "queues: another fence is another handle",
        MEMBERSHIP,
        "if pk not in mine or mine[pk][0].fence != queue.fence:",
        "if pk not in mine:",
        MEMBERS,
    ),
    Mutation(
        "queues: the trust counts from when the look was sent",
        MEMBERSHIP,
        "self.trusted_until = self._trust_from(seen.sent_at)",
        "self.trusted_until = self._trust_from(monotonic() + 3600)",
        HANDLES,
    ),
    Mutation(
        "queues: what has passed since the request counts",
        MEMBERSHIP,
        "takeover_after(seen.drain_within, self.lease.terms.ttl) - one.asked_ago",
        "takeover_after(seen.drain_within, self.lease.terms.ttl)",
        HANDLES,
    ),
    Mutation(
        "queues: a server registers outside of transactions",
        REGISTERING,
        "if connections[using].in_atomic_block:",
        "if False:",
        MEMBERS,
    ),
    Mutation(
        "queues: who was judged dead registers again",
        SERVER,
        "membership = self._register_again(membership)",
        "pass",
        SERVERS,
    ),
    Mutation(
        "queues: no work begins in a pause or at the end",
        MEMBERSHIP,
        " and not self.is_resting",
        "",
        HANDLES,
    ),
    Mutation(
        "queues: a forked child has no queues",
        SERVER,
        "        if self._pid != os.getpid():\n            raise LeaseFromAnotherProcess(",
        "        if False:\n            raise LeaseFromAnotherProcess(",
        SERVERS,
    ),
    # Stopping, dying, coming back
    Mutation(
        "queues: who stops drains",
        MEMBERSHIP,
        "if self.is_stopping and not self._is_draining:",
        "if False:",
        SERVERS,
    ),
    Mutation(
        "queues: a loop of the same thread does not hold up the end",
        SERVER,
        "membership.finish_loops()",
        "pass",
        SERVERS,
    ),
    Mutation(
        "queues: a server without a thread is none",
        SERVER,
        "                self._leave()\n                raise\n",
        "                raise\n",
        SERVERS,
    ),
    Mutation(
        "queues: the end of the process is no death",
        SERVER,
        "except LeaseReleased:  # by the end of this process",
        "except ZeroDivisionError:",
        SERVERS,
    ),
    Mutation(
        "queues: who drains goes on draining",
        MEMBERSHIP,
        "return replace(self.application, state=state)",
        "return self.application",
        (*MEMBERS, *SERVERS),
    ),
    Mutation(
        "queues: also when its row is gone",
        MEMBERSHIP,
        "is not None:  # else judged dead, and as it was",
        "or True:",
        MEMBERS,
    ),
    Mutation(
        "queues: no heartbeat without a look",
        MEMBERSHIP,
        "return monotonic() < self.trusted_until",
        "return True",
        HANDLES,
    ),
    Mutation(
        "queues: the keeper asks before it renews",
        "leases/keeper.py",
        " or not _may_renew(lease)",
        "",
        HANDLES,
    ),
    Mutation(
        "queues: registering waits for other planners",
        REGISTERING,
        "            if monotonic() > gives_up_at:\n                raise\n",
        "            raise\n",
        MEMBERS,
    ),
    Mutation(
        "queues: registering does not wait for ever",
        REGISTERING,
        "if monotonic() > gives_up_at:",
        "if False:",
        MEMBERS,
    ),
    # Looking, handing over
    Mutation(
        "queues: whoever waits gets it after the work",
        MEMBERSHIP,
        "self._due_at(self._seen.sent_at + self._soonest(self._seen))",
        "pass",
        HANDLES,
    ),
    Mutation(
        "queues: and no sooner than the pace allows",
        MEMBERSHIP,
        "self._due_at(self._seen.sent_at + self._soonest(self._seen))",
        "self._due_at(0.0)",
        HANDLES,
    ),
    Mutation(
        "queues: what a locked row kept is not in doubt",
        MEMBERSHIP,
        "except RowLocked:\n            for queue",
        "except ZeroDivisionError:\n            for queue",
        MEMBERS,
    ),
    Mutation(
        "queues: what was not taken is relied on again",
        MEMBERSHIP,
        "                queue.is_leaving = False\n            self.news.notify_all()\n",
        "            self.news.notify_all()\n",
        MEMBERS,
    ),
    Mutation(
        "queues: what was ended by mistake is had again",
        MEMBERSHIP,
        "if queue.is_over]",
        "if False]",
        MEMBERS,
    ),
    Mutation(
        "queues: but not while work on it goes on",
        HELD,
        "return self._ended is not None and not self.is_in_hand",
        "return self._ended is not None",
        MEMBERS,
    ),
    Mutation(
        "queues: a server looks in time for its own interval",
        MEMBERSHIP,
        "wait = min(seen.heartbeat_every, self.lease.terms.ttl / 3)",
        "wait = seen.heartbeat_every",
        MEMBERS,
    ),
    Mutation(
        "queues: however seldom others may look",
        MEMBERSHIP,
        "return min(seen.reload_every, self.lease.terms.ttl / 3)",
        "return seen.reload_every",
        MEMBERS,
    ),
    Mutation(
        "queues: who waits for queues looks more often",
        MEMBERSHIP,
        "if seen.sent_at < self._hurries_until:",
        "if False:",
        MEMBERS,
    ),
    Mutation(
        "queues: and not for ever",
        MEMBERSHIP,
        "if seen.sent_at < self._hurries_until:",
        "if self._hurries_until:",
        MEMBERS,
    ),
)

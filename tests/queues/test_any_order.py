"""Whatever happens in whatever order, no two servers rely on the same queue at once, and in the end all is shared.

Both clocks, the database's and the process's, go on together and as fast as the schedule says.
"""

import contextlib
import random
from collections import Counter, defaultdict

import pytest

from resourcepool.db.dialect import DbLater, MicrosUntil
from resourcepool.exceptions import BadOption
from resourcepool.models import Move, Queue, Server
from resourcepool.queues import administration
from resourcepool.queues.serving.held_queue import HeldQueue, WorkSlot
from resourcepool.queues.serving.membership import Membership
from tests.committed import Clock
from tests.queues.members import NAME, SETTINGS, TTL, create_queue_group, join, read_queue_group, replan

pytestmark = pytest.mark.usefixtures("transactional_db")

STEPS = 120
SEEDS = 8
DRAIN = 40.0


class World:
    """Servers of one process; paused servers keep their last state."""

    def __init__(self, seed: int, clock: Clock) -> None:
        self.random, self.clock = random.Random(seed), clock
        self.members: list[Membership] = []
        self.still: list[Membership] = []
        self.works: list[tuple[Membership, HeldQueue, WorkSlot]] = []
        self.said: list[str] = []
        create_queue_group(8, handover_timeout=DRAIN, strategy=self.random.choice(["sticky", "round_robin"]))

    def step(self) -> None:
        """Make a change, and check the invariants."""
        often = [self.turn] * 28 + [self.time_passes] * 8 + [self.begin] * 8 + [self.end] * 3
        seldom = [self.join, self.join, self.leave, self.pause, self.wake, self.order, self.order, self.plan]
        chosen = self.random.choice(often + seldom)
        self.said.append(chosen.__name__)
        chosen()
        self.judge()

    def judge(self) -> None:
        relied_on = defaultdict(set)
        for member in [*self.members, *self.still]:
            for handle in member.held:
                if handle.is_held:
                    relied_on[handle.pk].add(handle)
        for _, handle, _ in self.works:
            if handle.is_held:
                relied_on[handle.pk].add(handle)
        twice = [handles for handles in relied_on.values() if len(handles) > 1]
        assert not twice, (twice, self.said)

    def join(self) -> None:
        if len(self.members) < 5:
            self.members.append(self.new("ABC"[self.random.randrange(3)]))

    def new(self, name: str, after: Membership | None = None) -> Membership:
        return join(name, weight=self.random.randint(1, 3), after=after)

    def leave(self) -> None:
        if member := self.any_member():
            self.members.remove(member)
            member.leave()

    def pause(self) -> None:
        if member := self.any_member():
            self.members.remove(member)
            self.still.append(member)

    def wake(self) -> None:
        if self.still:
            self.members.append(self.still.pop())

    def turn(self) -> None:
        if member := self.any_member():
            if not member.lease.is_held:  # as a server does
                again = self.new("A", member)
                self.members[self.members.index(member)] = member = again
            member.turn()

    def begin(self) -> None:
        if (member := self.any_member()) and member.held:
            handle = self.random.choice(member.held)
            hand = WorkSlot(is_loop=True)
            if member.begin(handle, hand):
                self.works.append((member, handle, hand))
                meeting = Counter((which.pk, id(which._owner.changed)) for _, which, _ in self.works)
                assert max(meeting.values()) == 1, self.said

    def end(self) -> None:
        if self.works:
            member, handle, hand = self.works.pop(self.random.randrange(len(self.works)))
            member.finish(handle, hand)

    def plan(self) -> None:
        replan(if_due=True)

    def order(self) -> None:
        """Have an operator do something."""
        ids = list(Queue.objects.filter(is_retiring=False).values_list("queue_id", flat=True))
        new = f"new {self.random.randrange(10**6)}"
        chosen = self.random.choice(
            [
                lambda: administration.drain(NAME, "ABC"[self.random.randrange(3)]),
                lambda: administration.undrain(NAME, "ABC"[self.random.randrange(3)]),
                lambda: administration.pin(NAME, [self.random.choice(ids)], self.random.choice(["", "A", "B"])),
                lambda: administration.add_queues(NAME, [new]),
                lambda: administration.remove_queues(NAME, [self.random.choice(ids)]) if len(ids) > 4 else None,
                self.change_the_deadline,
            ]
        )
        with contextlib.suppress(BadOption):
            chosen()

    def change_the_deadline(self) -> None:
        queue_group = read_queue_group()
        queue_group.handover_timeout = self.random.choice([TTL, DRAIN, 2 * DRAIN])
        queue_group.save(update_fields=["handover_timeout"])

    def time_passes(self, seconds: float | None = None) -> None:
        passed = self.random.uniform(0.5, TTL / 4) if seconds is None else seconds
        for rows, moment in (
            (Server.objects, "busy_before"),
            (Queue.objects.exclude(requested_at=None), "requested_at"),
        ):
            for pk, left in rows.values_list("pk", MicrosUntil(moment)):
                rows.filter(pk=pk).update(**{moment: DbLater(left / 1_000_000 - passed)})
        self.clock.ahead += passed

    def any_member(self) -> Membership | None:
        return self.random.choice(self.members) if self.members else None

    def settle(self) -> None:
        """Let the last work end and all servers check a few times."""
        while self.works:
            self.end()
        for name in {server.name for server in Server.objects.alive()}:
            administration.undrain(NAME, name)
        self.join()
        for _ in range(4):
            self.time_passes(TTL / 3)
            for member in list(self.members):
                self.members.remove(member)
                self.members.insert(0, member if member.lease.is_held else self.new("A"))
                self.members[0].turn()
                self.judge()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_queue_is_relied_on_by_two_and_in_the_end_all_are_shared(seed: int, process_clock: Clock) -> None:
    world = World(seed, process_clock)
    for _ in range(STEPS):
        world.step()
    world.settle()
    living = {member.lease.pk for member in world.members if member.lease.is_held}
    owners = dict(Queue.objects.values_list("queue_id", "cur_server"))
    assert set(owners.values()) <= living, world.said
    assert set(Server.objects.values_list("pk", flat=True)) == living
    assert not Queue.objects.exclude(requested_at=None).exists()
    assert {handle.pk for member in world.members for handle in member.held if handle.is_held} == set(
        Queue.objects.values_list("pk", flat=True)
    )
    assert read_queue_group().heartbeat_every == SETTINGS["heartbeat_every"]
    fences = defaultdict(list)
    for pk, what, fence in Move.objects.order_by("pk").values_list("queue_pk", "what", "fence"):
        fences[pk, what in ("assigned", "handed_over", "taken_over", "unassigned")].append(fence)
    for (_, is_new), found in fences.items():
        assert found == sorted(found)
        assert not is_new or len(set(found)) == len(found)

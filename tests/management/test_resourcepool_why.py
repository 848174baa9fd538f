"""``manage.py resourcepool_why``: holders, and why a waiter is not served."""

import shlex

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.locks import Channel
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Proxy
from resourcepool.queues.administration import create
from tests.app.models import Device
from tests.app.rows import hold, new
from tests.history.recorded import told
from tests.management.command_runner import run
from tests.waiting.threads import ticket

pytestmark = pytest.mark.usefixtures("history")


class TestAResource:
    def test_that_is_held(self) -> None:
        proxy = new(Proxy)
        lease = hold(proxy, holder="crawler3/77/MainThread/a.1", ttl=60)
        said = run("why", proxy.pk).out.splitlines()
        assert said[0] == f"resourcepool.Proxy {proxy.pk}: {proxy}"
        assert "  held by:      crawler3/77/MainThread/a.1" in said
        assert "  process:      crawler3 pid 77" in said
        assert "  since:        unknown" in said
        assert f"  fence:        {lease.fence}" in said
        assert not any("last renewal" in line for line in said), "the history does not know its ttl"

    def test_tells_how_its_last_leases_ended(self) -> None:
        proxy = new(Proxy)
        for _ in range(7):
            with Proxy.pool.lease(holder="crawler 7"):
                pass
        Proxy.pool.acquire(holder="crawler 8")
        run("close", "proxy", proxy.pk, "--reason", "hangs")
        told(proxy)
        ends = run("why", proxy.pk, "--json").json["endings"]
        assert [end["what"] for end in ends] == ["revoked", *["released"] * 4]
        assert (ends[0]["reason"], ends[0]["holder"]) == ("hangs", "crawler 8")
        assert "hangs" in run("why", proxy.pk).out

    def test_by_its_address_with_a_password_that_is_not_repeated(self) -> None:
        proxy = new(Proxy, host="h.example", username="joe", password="CANARY")
        for text in (
            "http://joe:CANARY@h.example:3128",
            "h.example:3128:joe:CANARY",
            str(proxy),
            "h.example:3128",
        ):
            said = run("why", text)
            assert said.out.startswith(f"resourcepool.Proxy {proxy.pk}: ")
            assert "CANARY" not in said.all
        for text in ("http://joe:CANARY@other:3128", "other:3128:joe:CANARY"):
            nobody = run("why", text)
            assert nobody.code == 1
            assert "CANARY" not in nobody.all


class TestAHolder:
    def test_that_holds_something(self) -> None:
        proxy = new(Proxy)
        hold(proxy, holder="alice's job")
        said = run("why", "alice").out
        assert said.startswith("alice's job\n\nLeases:\n")
        assert str(proxy) in said

    def test_that_waits_is_told_its_place_and_why(self) -> None:
        hold(new(Proxy, country="US"), holder="somebody")
        new(Proxy, country="DE")
        ticket(Proxy, holder="first", selector='{"country": "US"}', asked_at=DbLater(-300))
        ticket(Proxy, holder="me", selector='{"country": "US"}', asked_at=DbLater(-125))
        said = run("why", "me").out
        assert (
            "Waiting for proxies (country=US) for 2 min, number 2 in line. Matching resources: 0 free, 1"
            in said
        )
        (waits,) = run("why", "me", "--json").json["waits"]
        assert (waits["model"], waits["place"], waits["wants"]) == ("resourcepool.Proxy", 2, "country=US")

    def test_that_is_a_process_is_told_with_all_it_holds_and_waits_for(self) -> None:
        proxies = [new(Proxy) for _ in range(3)]
        for number, proxy in enumerate(proxies):
            hold(proxy, holder=f"crawler3/77/Thread-{number}/0123abcd.{number}")
        hold(new(Proxy), holder="crawler3/777/MainThread/4567abcd.1")
        ticket(Device, holder="crawler3/77/MainThread/0123abcd.9")
        mutex = LockRow.objects.create(name="nightly")
        hold(mutex, holder="crawler3/77/MainThread/0123abcd.8@8")
        said = run("why", "crawler3/77")
        assert (said.code, said.out.partition("\n")[0]) == (0, "crawler3/77")
        assert all(str(proxy) in said.out for proxy in proxies)
        assert "crawler3/777" not in said.out
        assert "Waiting for devices for" in said.out
        assert "nightly" in said.out
        found = run("why", "crawler3/77/", "--limit", 2, "--json").json
        assert (len(found["leases"]), found["leases_total"]) == (2, 3)
        assert [one["name"] for one in found["holds"]] == ["nightly"]
        assert "1 more; use --limit to show more" in run("why", "crawler3/77", "--limit", 2).out


class TestWhoIsMeant:
    def test_several_are_listed(self) -> None:
        for number in (1, 2):
            new(Proxy, host=f"h{number}.example.net")
        hold(new(Device, name="phone"), holder="example.net job")
        listed = run("why", "example.net")
        assert listed.code == 1
        assert listed.out.count("resourcepool.Proxy") == 2
        assert "holder example.net job" in listed.out
        assert "'example.net' matches all of these; choose one, for example: manage.py resource" in listed.err
        assert len(run("why", "example.net", "--json").json["resources"]) == 2

    def test_the_refusal_ends_with_a_command_that_finds_one(self) -> None:
        proxy = new(Proxy)
        new(Device, name=str(proxy.pk))  # its name is the other's key
        refused = run("why", proxy.pk)
        command = refused.err.strip().partition("for example: manage.py resourcepool_why ")[2]
        assert command
        assert run("why", *command.split()).code == 0

    def test_that_is_a_holder_is_quoted_for_the_shell(self) -> None:
        for name in ("alice's job", "alice's job 2"):
            hold(new(Proxy), holder=name)
        refused = run("why", "alice")
        command = refused.err.strip().partition("for example: manage.py resourcepool_why ")[2]
        assert run("why", *shlex.split(command)).out.startswith("alice's job\n")

    @pytest.mark.parametrize("words", [["device", "{}"], ["{}", "--pool", "device"], ["testapp.Device", "{}"]])
    def test_the_pool_may_be_said_first_or_as_an_option(self, words: list[str]) -> None:
        device = new(Device, name="phone")
        hold(new(Device, name="tablet"), holder=str(device.pk))
        said = run("why", *(word.format(device.pk) for word in words))
        assert said.out.startswith(f"{Device._meta.label} {device.pk}: ")

    def test_only_so_many(self) -> None:
        for number in range(4):
            new(Proxy, host=f"h{number}.example.net")
        listed = run("why", "example.net", "--limit", 2).out.splitlines()
        assert len(listed) == 3
        assert listed[-1] == "... more matches; type more of the name"

    def test_nobody(self) -> None:
        refused = run("why", "no\x1bone")
        places = "stream, dispenser, topic, channel, election, queue group or lock"
        kinds = f"resource, active lease, waiter, {places}"
        assert refused.err == f"no {kinds} named 'no?one'\n"
        assert refused.code == 1
        assert run("why", " ").code == 1
        assert "one of resourcepool.Proxy" in run("why", "1", "--pool", "nope").err


class TestOtherNames:
    def test_of_an_election_it_says_who_leads(self) -> None:
        hold(ElectionRow.objects.create(name="reports"), holder="web-1/77/MainThread/a.1")
        for words in (["reports"], ["election", "reports"]):
            assert "web-1/77/MainThread/a.1" in run("why", *words).out
        assert run("why", "election", "report").err == "no election named report\n"
        wrong = run("why", "elections", "reports").err
        assert wrong.startswith("pool='elections' is not allowed: it must be one of")
        assert wrong.endswith(
            "lock, semaphore, rwlock, condition, barrier, stream, dispenser, topic, channel, election\n"
        )

    def test_all_that_has_a_name_is_shown(self) -> None:
        create("orders", ["0", "1"])
        assert run("why", "orders", "--json").json["queues"] == 2
        hold(LockRow.objects.create(name="orders"), holder="web-1/77/MainThread/a.1")
        Channel("orders").publish(1)
        said = run("why", "orders").out
        assert "lock orders" in said
        assert "published/min" in said
        assert "Details: manage.py resourcepool_queues show orders" in said
        found = run("why", "orders", "--json").json
        assert (found["channel"]["last"], found["queue_group"]["queues"]) == (1, 2)
        assert [one["kind"] for one in found["locks"]] == ["lock"]

    def test_the_name_of_a_pool_leads_to_its_command(self) -> None:
        refused = run("why", "Device")
        told = "'Device' is a pool, not a resource; run manage.py resourcepool_status Device\n"
        assert (refused.code, refused.err) == (1, told)


@pytest.mark.django_db
def test_a_channel_is_found_by_its_kind_as_a_lock_is() -> None:
    Channel("config").publish(1)
    assert run("why", "channel", "config").out == run("why", "config").out
    assert "no channel named other" in run("why", "channel", "other").err
    assert "no stream named config" in run("why", "stream", "config").err

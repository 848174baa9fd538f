"""Locks, semaphores and read-write locks in the admin."""

import re
from typing import Any, ClassVar

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from resourcepool.admin import events
from resourcepool.history.writer import Entry, write
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import RWLockPermit, SemaphorePermit
from resourcepool.signals import EventKind, RowEvent
from tests.admin.conftest import may_only
from tests.committed import *  # noqa: F403 (fixtures)
from tests.history.fixtures import history  # noqa: F401 (a fixture)
from tests.status.locks.conftest import A, B, crowd, later, lock, permits, waits

__all__ = ["crowd"]

pytestmark = pytest.mark.django_db(transaction=True)
LISTS = ("lock", "semaphorepermit", "rwlockpermit")


def told(model: Any, pk: str, reason: str, fence: int = 5) -> None:
    """Let the history have an event as its recorder writes it."""
    write([Entry(RowEvent(EventKind.REVOKED, model, "default", pk, fence, A, reason, "maria"))])


def page(client: Client, name: str, *args: Any, **query: str) -> str:
    found = client.get(reverse(f"admin:resourcepool_{name}", args=args), query)
    assert found.status_code == 200, found
    return found.content.decode()


@pytest.mark.usefixtures("crowd")
class TestSeeing:
    def test_a_list_has_one_line_for_each_name(self, admin_client: Client) -> None:
        shown = page(admin_client, "lock_changelist")
        assert "web-1/4711/worker-1" in shown
        assert "2 waiters" in shown
        shown = page(admin_client, "semaphorepermit_changelist")
        assert shown.count("3 of 4 held") == 1
        assert shown.count("0 of 2 held") == 1
        assert "2 of 4 held" in page(admin_client, "rwlockpermit_changelist")

    def test_only_what_is_held_can_be_revoked(self, admin_client: Client) -> None:
        for model, page_key in (("lock", "{}"), ("semaphorepermit", "{}_230")):
            listed = page(admin_client, f"{model}_changelist")
            for name, is_held in (("busy", True), ("idle", False)):
                key = page_key.format(name)
                assert (f"/{model}/{key}/operate/revoke/" in listed) is is_held
                assert ('id="operate-revoke"' in page(admin_client, f"{model}_change", key)) is is_held

    def test_filters_and_the_search_find_names(self, admin_client: Client) -> None:
        for query, found in (
            ({"status": "held"}, 1),
            ({"status": "waited"}, 1),
            ({"q": "i"}, 1),
            ({"q": "I"}, 0),
        ):
            for model in LISTS[:2]:
                shown = page(admin_client, f"{model}_changelist", **query)
                assert shown.count('class="field-status_badge"') == found, (model, query)

    def test_the_page_of_a_name_shows_holders_and_line(self, admin_client: Client) -> None:
        shown = page(admin_client, "semaphorepermit_change", "busy_230")
        assert "busy" in shown
        shown = page(admin_client, "semaphorepermit_change", "busy#0".replace("#", "_23"))
        assert f"{A}: 2, fence 1, expires in" in shown
        assert later(B).replace(".92@2", ".93@3") not in shown.replace(later(B), "")
        assert ": 2, waiting for" in shown

    def test_it_says_since_when_a_lock_is_held_and_who_held_it_before(self, admin_client: Client) -> None:
        assert "held before by" not in page(admin_client, "lock_change", "busy")
        write([Entry(RowEvent(EventKind.RELEASED, LockRow, "default", "busy", 5, B))])
        write([Entry(RowEvent(EventKind.ACQUIRED, LockRow, "default", "busy", 7, A))])
        shown = page(admin_client, "lock_change", "busy")
        assert re.search("unless renewed, held for [01] s", shown)
        assert re.search("worker-2, released [01] s ago", shown)
        shown = page(admin_client, "lock_changelist")
        assert re.search("for [01] s; before: web-1/4711/worker-2, released [01] s ago", shown)

    def test_a_circle_is_named_on_the_page(self, admin_client: Client) -> None:
        lock("next", B)
        waits("lock", "next", A)
        said = "web-1/4711/worker-1 holds lock busy and waits for lock next"
        assert said in page(admin_client, "lock_change", "busy")
        assert "waits for lock" not in page(admin_client, "lock_change", "idle")

    def test_a_lock_in_a_deadlock_is_marked(self, admin_client: Client, client: Client) -> None:
        marked = '<span class="resourcepool-state bad">deadlock</span>'
        assert marked not in page(admin_client, "lock_changelist")
        lock("next", B)
        waits("lock", "next", A)
        assert page(admin_client, "lock_changelist").count(marked) == 2
        assert marked in page(admin_client, "lock_change", "busy")
        may_only(client, "view_lock")  # who may not see other kinds of locks
        assert marked not in page(client, "lock_changelist")

    def test_who_may_see_locks_alone_is_told_of_no_circle(self, client: Client) -> None:
        permits("semaphore", "secret", [B])
        waits("semaphore", "secret", A)
        may_only(client, "view_lock")
        assert "secret" not in page(client, "lock_change", "busy")
        for model in LISTS[1:]:
            assert client.get(reverse(f"admin:resourcepool_{model}_changelist")).status_code == 403


@pytest.mark.usefixtures("crowd")
class TestFreeingHolders:
    ADDRESS = "/admin/resourcepool/lock/busy/operate/revoke-holder/"
    ANSWERS: ClassVar = {"confirmed": "1", "reason": "gone"}

    def test_it_takes_the_permission_for_each_kind(self, client: Client) -> None:
        every = [f"{action}_{model}" for model in LISTS for action in ("view", "operate")]
        may_only(client, *every[:-1])
        assert client.post(self.ADDRESS, self.ANSWERS).status_code == 403
        assert "operate/revoke/" in page(client, "lock_change", "busy")
        assert "revoke-holder" not in page(client, "lock_change", "busy")
        assert LockRow.objects.get(pk="busy").holder == A
        get_user_model().objects.get().user_permissions.set(Permission.objects.filter(codename__in=every))
        assert "revoke-holder" in page(client, "lock_change", "busy")


class TestHistory:
    def test_the_page_of_a_name_tells_of_all_its_rows_and_of_no_other_name(self, admin_client: Client) -> None:
        for name in ("licence", "licence#7", "licence2", "LICENCE"):
            permits("semaphore", name, [A, B, ""])
            for number in (1, 0):
                told(SemaphorePermit, f"{name}#{number}", f"{name} {number} revoked")
        told(RWLockPermit, "licence#1", "of another kind")
        shown = page(admin_client, "semaphorepermit_change", "licence_230")
        assert re.findall(r": (\S+ \d revoked)", shown) == ["licence 0 revoked", "licence 1 revoked"]
        assert "semaphore licence" in page(admin_client, "semaphorepermit_activity", "licence_230")

    def test_all_of_it_is_on_pages_of_their_own(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(events, "LATEST", 1)
        permits("semaphore", "licence", [A, B])
        told(SemaphorePermit, "licence#0", "the first", fence=900)
        told(SemaphorePermit, "licence#1", "the second", fence=3)
        shown = page(admin_client, "semaphorepermit_change", "licence_230")
        assert ("the second" in shown, "the first" in shown) == (True, False)
        (everything,) = re.findall(r'href="([^"]*)" id="all-activity"', shown)
        shown = admin_client.get(everything).content.decode()
        assert shown.index("the second") < shown.index("the first")

    def test_two_long_names_that_begin_alike_do_not_tell_of_each_other(self, admin_client: Client) -> None:
        one, other = "x" * 198 + "äa", "x" * 198 + "äb"
        for name in (one, other):
            lock(name)
            told(LockRow, name, f"revoked {name[-1]}")
            permits("semaphore", name, [""] * 2)
            told(SemaphorePermit, f"{name}#1", f"revoked permit {name[-1]}")
        shown = page(admin_client, "lock_change", one)
        assert ("revoked a" in shown, "revoked b" in shown) == (True, False)
        shown = page(admin_client, "semaphorepermit_change", f"{one}_230")
        assert ("revoked permit a" in shown, "revoked permit b" in shown) == (True, False)

    def test_pages_and_notes_call_it_by_its_name(self, admin_client: Client) -> None:
        permits("semaphore", "licence", [A])
        shown = page(admin_client, "semaphorepermit_change", "licence_230")
        assert "<h2>licence</h2>" in shown
        assert "licence#0" not in shown.replace("licence_230", "")
        assert "<title>Select semaphore to view" in page(admin_client, "semaphorepermit_changelist")


@pytest.mark.usefixtures("crowd", "history")
class TestResizing:
    def test_only_semaphores_are_resized_and_only_by_those_who_may(
        self, client: Client, admin_client: Client
    ) -> None:
        answers = {"confirmed": "1", "permits": "2", "reason": "x"}
        address = reverse("admin:resourcepool_rwlockpermit_operate", args=["catalogue_230", "resize"])
        assert admin_client.post(address, answers).status_code == 404
        may_only(client, "view_semaphorepermit", "operate_lock")
        address = reverse("admin:resourcepool_semaphorepermit_operate", args=["busy_230", "resize"])
        assert client.post(address, answers).status_code == 403
        assert "operate/resize" not in page(client, "semaphorepermit_change", "busy_230")
        assert SemaphorePermit.objects.filter(name="busy", in_service=True).count() == 4

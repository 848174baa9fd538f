"""Users with different permissions, and rows."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind
from tests.app.rows import change

READS = (
    *("view_proxy", "view_event", "view_job", "view_sample", "view_ticket"),
    *("view_queuegroup", "view_server", "view_queue", "view_move"),
)
OPERATES = ("operate_proxy", "operate_queuegroup", "operate_server", "operate_queue")
CHANGES = ("add_proxy", "change_proxy", "delete_proxy", "add_queue", "delete_queue")
SETS_UP = ("add_queuegroup", "change_queuegroup", "delete_queuegroup")
BLINDLY = ("add_proxy", "delete_proxy", "add_queue", "delete_queue", "add_queuegroup", "delete_queuegroup")

ROLES: dict[str, tuple[str, ...]] = {
    "staff": (),
    "viewer": READS,
    "operator": (*READS, *OPERATES),
    "blind operator": OPERATES,
    "administrator": (*READS, *CHANGES, *SETS_UP),
    "blind administrator": BLINDLY,
}


def sign_in(role: str) -> Client:
    """Return a client logged in with this role; "anonymous" and "superuser" are roles, too."""
    client = Client()
    if role == "superuser":
        client.force_login(User.objects.create_superuser(role))
    elif role != "anonymous":
        user = User.objects.create_user(role, is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=ROLES[role]))
        assert user.user_permissions.count() == len(ROLES[role])
        client.force_login(user)
    return client


def may_only(client: Client, *permissions: str) -> User:
    """Log in a new staff user with these permissions."""
    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return user


@pytest.fixture
def operator(db: None) -> Client:
    return sign_in("operator")


@pytest.fixture
def viewer(db: None) -> Client:
    return sign_in("viewer")


@pytest.fixture
def administrator(db: None) -> Client:
    return sign_in("administrator")


@pytest.fixture
def proxy(db: None) -> Proxy:
    return Proxy.objects.create(host="a.example", port=80, username="joe")


def lease(row: Any, holder: str = "web1/41/main/ab.1", seconds: float = 60) -> None:
    """Lease the row to ``holder``, with a higher fence."""
    row.refresh_from_db()
    change(row, busy_before=DbLater(seconds), holder=holder, fence=row.fence + 1)
    row.refresh_from_db()


def event(row: Any, what: EventKind = EventKind.ACQUIRED, /, ago: float = 0.0, **more: Any) -> Event:
    """Add an event of the row to the history."""
    at = DbLater(-ago) if ago else DbNow()
    usual = {
        "pool": row._meta.label_lower,
        "row": str(row.pk),
        "fence": getattr(row, "fence", 0),
        "holder": getattr(row, "holder", ""),
    }
    made: Event = Event.objects.create(at=at, what=what, **{**usual, **more})
    return made


def text(answer: Any) -> str:
    """Return the text of a page."""
    assert answer.status_code == 200, answer
    body: str = answer.content.decode()
    return body


def form_at(client: Client, address: str) -> dict[str, Any]:
    """Return what the form at this address sends if nothing is edited."""
    form = client.get(address).context["adminform"].form
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in values.items() if value is not None and value is not False}

"""The form of a proxy and the import accept and refuse the same values."""

from typing import Any

import pytest
from django.test import Client

from resourcepool.models import Proxy
from resourcepool.proxies import fields
from resourcepool.resources.import_file import BadField

ADD = "/admin/resourcepool/proxy/add/"
VALID = {"scheme": "http", "host": "a.example", "port": "80", "weight": "1"}
TYPED_AS = {"password": "new_password"}
TYPED = [
    *("joe", "a\r\nb", "a\nb", "a\tb", "a\0b", "\x1b[31m", "a\x7fb", "a\x85b", "a\u2028b", "ä ö", "p:w@/%"),
    *("x" * 200, "x" * 201),
    *("x" * 1_000, "x" * 1_001, "x" * 2_000, "x" * 2_001, "x" * 2_000_000, "US", "us", "ÜS", "USA"),
    *("1.2.3.4", "[::1]", "a_b.example"),
]

pytestmark = pytest.mark.django_db


def taken_by_the_form(client: Client, name: str, typed: str) -> tuple[bool, str]:
    """Return whether the form accepts it, and the stored value."""
    answer = client.post(ADD, {**VALID, TYPED_AS.get(name, name): typed})
    assert answer.status_code in (200, 302), typed[:20]
    row: Any = Proxy.objects.first()
    return answer.status_code == 302, "" if row is None else str(getattr(row, name))


def taken_by_the_import(name: str, text: str) -> bool:
    try:
        fields.FIELD_PARSERS[name](text)
    except BadField:
        return False
    return True


@pytest.mark.parametrize("name", ["host", "username", "password", "country", "notes"])
@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: ascii(typed[:12]) + str(len(typed)))
def test_form_and_import_accept_the_same_values(administrator: Client, name: str, typed: str) -> None:
    is_taken, stored = taken_by_the_form(administrator, name, typed)
    assert is_taken is taken_by_the_import(name, typed.replace("\r\n", "\n") if name == "notes" else typed)
    if is_taken:
        assert taken_by_the_import(name, stored)


def test_an_error_message_contains_no_password(administrator: Client) -> None:
    page = administrator.post(ADD, {**VALID, "new_password": "c4nary\x1b-s3cret"}).content.decode()
    assert "without control characters" in page
    assert "c4nary" not in page

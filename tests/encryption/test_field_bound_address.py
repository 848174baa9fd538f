"""A secret that is bound to an address: changes of the address, and failed saves."""

import enum
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import connection, models, transaction

from resourcepool.exceptions import SecretUnreadable
from resourcepool.models import Proxy
from tests.app.models import Login
from tests.encryption.bound_rows import ADDRESS, FIELD, SECRET, created, read

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("model", [Proxy, Login])
def test_a_refused_new_row_keeps_its_secret_under_another_name(model: Any) -> None:
    with_row = "host" if model is Proxy else "name"
    more = {"port": 80} if model is Proxy else {}
    row = model(**{with_row: "a.example", FIELD[model]: SECRET, **more})
    refused(row)
    row.pk, row._state.adding = None, True
    setattr(row, with_row, "b.example")
    row.save()
    assert getattr(model.objects.get(pk=row.pk), FIELD[model]) == SECRET


@pytest.mark.parametrize("model", [Proxy, Login])
def test_a_failed_rename_keeps_the_new_secret(model: Any) -> None:
    with_row = "host" if model is Proxy else "name"
    more = {"port": 80} if model is Proxy else {}
    row = model.objects.create(**{with_row: "a.example", FIELD[model]: "another", **more})
    row = model.objects.get(pk=row.pk)
    setattr(row, FIELD[model], SECRET)
    setattr(row, with_row, "b.example")
    refused(row)
    setattr(row, with_row, "c.example")
    row.save()
    assert read(row) == SECRET


@pytest.mark.parametrize("deferred", [[], ["password"]])
def test_resetting_an_address_after_a_failed_save_keeps_the_password(deferred: list[str]) -> None:
    created()
    proxy = Proxy.objects.defer(*deferred).get()
    proxy.host = "b.example"
    refused(proxy)
    proxy.host = "a.example"
    proxy.save()
    assert read(proxy) == SECRET


@pytest.mark.parametrize("update_fields", [None, ["host"]])
def test_a_changed_address_makes_the_password_unreadable_until_it_is_set_again(update_fields: Any) -> None:
    created()
    proxy = Proxy.objects.get()
    proxy.host = "b.example"
    refused(proxy)
    proxy.save(update_fields=update_fields)
    with pytest.raises(SecretUnreadable):
        read(proxy)
    proxy.password = "another"
    proxy.save()
    assert read(proxy) == "another"


class Spelling(str, enum.Enum):  # noqa: UP042 (whose str() is "Spelling.HTTP")
    HTTP = "http"


class Number(int, enum.Enum):
    PORT = 80


@pytest.mark.parametrize(
    "change", [{"scheme": Spelling.HTTP}, {"port": Number.PORT}, {"port": "80"}, {"port": 80.0}]
)
def test_values_stored_alike_are_equal(change: dict[str, Any]) -> None:
    if connection.vendor == "mysql" and "scheme" in change:
        pytest.skip("MySQL's driver stores str() of it: 'Spelling.HTTP'")
    row = Proxy.objects.create(**{**ADDRESS, **change}, password=SECRET)
    assert read(row) == SECRET
    loaded = Proxy.objects.get()
    for name, value in change.items():
        setattr(loaded, name, value)
    loaded.save()
    assert read(row) == SECRET


def refused(row: Any) -> None:
    """Save ``row``, which must fail."""
    refuse = Mock(side_effect=LookupError)
    models.signals.post_save.connect(refuse, sender=type(row))
    with pytest.raises(LookupError), transaction.atomic():
        row.save()
    models.signals.post_save.disconnect(refuse, sender=type(row))

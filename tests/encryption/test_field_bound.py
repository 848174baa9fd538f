"""A secret is bound to its column and its row: copied elsewhere, it cannot be decrypted."""

import enum
import io
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test.utils import isolate_apps

from resourcepool.encryption.field import EncryptedTextField
from resourcepool.encryption.secret import EncryptedSecret
from resourcepool.exceptions import SecretUnreadable
from resourcepool.models import Proxy
from resourcepool.proxies.importer import ProxyImporter
from tests.app.models import Device, Login
from tests.app.rows import new

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "c4nary-s3cret"
ADDRESS: dict[str, Any] = {"scheme": "http", "host": "a.example", "port": 80, "username": "joe"}
FIELD: dict[Any, str] = {Proxy: "password", Device: "pin", Login: "secret"}
LINE = f"http://joe:{SECRET}@a.example:80\n"


def stored(row: Any) -> str:
    """Return the stored value."""
    model = type(row)
    column = connection.ops.quote_name(model._meta.get_field(FIELD[model]).column)
    with connection.cursor() as cursor:
        pk = model._meta.pk.get_db_prep_value(row.pk, connection)
        cursor.execute(f"SELECT {column} FROM {model._meta.db_table} WHERE id = %s", [pk])
        return str(cursor.fetchone()[0])


def put(row: Any, text: str) -> Any:
    """Write ``text`` into the table unchanged; return the row as read afterwards."""
    sealed = EncryptedSecret(text.removeprefix("sealed:"))
    type(row)._base_manager.filter(pk=row.pk).update(**{FIELD[type(row)]: sealed})
    assert stored(row) == text
    return type(row)._base_manager.get(pk=row.pk)


def read(row: Any) -> str:
    """Return the secret as stored in the database."""
    return str(getattr(type(row)._base_manager.get(pk=row.pk), FIELD[type(row)]))


def created() -> None:
    """Create a proxy with its full address at once."""
    Proxy.objects.create(**ADDRESS, password=SECRET)


def made(model: Any, **fields: Any) -> Any:
    if model is Login:
        return Login.objects.create(name=f"login {Login.objects.count()}", **fields)
    return new(model, **fields)


def set_before_the_address() -> None:
    proxy = Proxy(password=SECRET)
    for name, value in ADDRESS.items():
        setattr(proxy, name, value)
    proxy.port = "80"
    proxy.save()


def made_many() -> None:
    Proxy.objects.bulk_create([Proxy(**ADDRESS, password=SECRET)])


def imported() -> None:
    ProxyImporter().run("-", stream=io.BytesIO(LINE.encode()))


def imported_again() -> None:
    Proxy.objects.create(**ADDRESS, password="another")
    ProxyImporter().run("-", update=True, stream=io.BytesIO(LINE.encode()))


def updated_and_saved() -> None:
    Proxy.objects.create(**ADDRESS)
    Proxy.objects.update(password=SECRET)
    Proxy.objects.get().save()


def updated_and_rotated() -> None:
    Proxy.objects.create(**ADDRESS)
    Proxy.objects.update(password=SECRET)
    call_command("resourcepool_rotate_secrets", stdout=io.StringIO())


def moved() -> None:
    proxy = Proxy.objects.create(**{**ADDRESS, "host": "b.example"}, password=SECRET)
    proxy.host, proxy.password = "a.example", proxy.password
    proxy.save()


WAYS: list[Callable[[], None]] = [
    *(created, set_before_the_address, made_many, imported, imported_again),
    *(updated_and_saved, updated_and_rotated, moved),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_in_another_row_is_unreadable_however_it_was_stored(way: Callable[[], None]) -> None:
    way()
    proxy = Proxy.objects.get()
    assert proxy.password == SECRET
    for change in ({"scheme": "https"}, {"host": "evil.example"}, {"port": 81}, {"username": "ann"}):
        thief = put(Proxy.objects.create(**{**ADDRESS, **change}), stored(proxy))
        with pytest.raises(SecretUnreadable, match="or the secret was copied from another row"):
            _ = thief.url
        thief.save()
        thief.full_clean()
        with pytest.raises(SecretUnreadable):
            read(thief)


@pytest.mark.parametrize("model", FIELD)
def test_update_binds_to_the_column_and_save_to_the_row(model: Any) -> None:
    row, other = made(model), made(model)
    model._base_manager.update(**{FIELD[model]: SECRET})
    assert read(row) == SECRET
    for elsewhere in set(FIELD) - {model}:
        with pytest.raises(SecretUnreadable):
            read(put(made(elsewhere), stored(row)))
    model._base_manager.get(pk=row.pk).save()
    with pytest.raises(SecretUnreadable):
        read(put(other, stored(row)))


def test_deferred_columns_are_read_when_needed() -> None:
    created()
    assert Proxy.objects.only("password").get().password == SECRET
    assert Proxy.objects.defer("host", "password").get().password == SECRET


def test_a_project_migration_can_read_it() -> None:
    created()
    state = MigrationExecutor(connection).loader.project_state()
    old = state.apps.get_model("resourcepool", "Proxy")
    assert old.objects.get().password == SECRET


@isolate_apps("tests.app")
def test_a_renamed_model_reads_its_secrets() -> None:
    class Login(models.Model):  # noqa: DJ008
        name = models.CharField(max_length=50)
        secret = EncryptedTextField(bound_to=["name"])

        class Meta:
            app_label = "testapp"

    class Account(models.Model):  # noqa: DJ008
        name = models.CharField(max_length=50)
        secret = EncryptedTextField(bound_to=["name"], called="testapp.Login.secret")

        class Meta:
            app_label = "testapp"

    sealed = Login._meta.get_field("secret").pre_save(Login(name="a", secret=SECRET), True)
    assert Account(name="a", secret=sealed).secret == SECRET
    with pytest.raises(SecretUnreadable):
        _ = Account(name="b", secret=sealed).secret


@isolate_apps("tests.app")
@pytest.mark.parametrize(
    ("columns", "ids"),
    [
        ((), ["resourcepool.W027"]),
        (("name",), []),
        (("name", "nmae"), ["resourcepool.E014"]),
        (("secret",), ["resourcepool.E014"]),
    ],
)
def test_an_unbound_field_is_reported(columns: tuple[str, ...], ids: list[str]) -> None:
    class Account(models.Model):  # noqa: DJ008
        name = models.CharField(max_length=50)
        secret = EncryptedTextField(bound_to=columns)

        class Meta:
            app_label = "testapp"

    assert [one.id for one in Account.check()] == ids


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

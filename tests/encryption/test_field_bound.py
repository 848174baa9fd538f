"""A secret is bound to its column and its row: copied elsewhere, it cannot be decrypted."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core import serializers
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor
from django.test.utils import isolate_apps

from resourcepool.encryption.field import EncryptedTextField
from resourcepool.encryption.secret import EncryptedSecret
from resourcepool.exceptions import SecretUnreadable
from resourcepool.models import Proxy
from resourcepool.proxies.importer import ProxyImporter
from tests.app.models import Login
from tests.app.rows import new
from tests.encryption.bound_rows import ADDRESS, FIELD, SECRET, created, read

pytestmark = pytest.mark.django_db(transaction=True)

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


def before_there_were_purposes(settings: Any) -> str:
    return f"sealed:{Fernet(settings.RESOURCEPOOL['SECRET_KEYS'][0]).encrypt(SECRET.encode()).decode()}"


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


def test_is_unreadable_after_a_change_of_the_address_in_the_table() -> None:
    created()
    Proxy.objects.update(host="evil.example")
    with pytest.raises(SecretUnreadable):
        _ = Proxy.objects.get().url
    Proxy.objects.update(host="a.example")
    assert Proxy.objects.get().password == SECRET


@pytest.mark.parametrize("model", FIELD)
def test_a_copy_in_a_project_model_is_unreadable(model: Any) -> None:
    row = made(model, **{FIELD[model]: SECRET})
    assert read(row) == SECRET
    for other in FIELD:
        with pytest.raises(SecretUnreadable):
            read(put(made(other), stored(row)))


@pytest.mark.parametrize("model", FIELD)
def test_update_binds_to_the_column_and_save_to_the_row(
    model: Any,
) -> None:
    row, other = made(model), made(model)
    model._base_manager.update(**{FIELD[model]: SECRET})
    assert read(row) == SECRET
    for elsewhere in set(FIELD) - {model}:
        with pytest.raises(SecretUnreadable):
            read(put(made(elsewhere), stored(row)))
    model._base_manager.get(pk=row.pk).save()
    with pytest.raises(SecretUnreadable):
        read(put(other, stored(row)))


@pytest.mark.parametrize("model", FIELD)
def test_an_old_secret_is_readable_after_a_rotation(model: Any, settings: Any) -> None:
    row, other = made(model), made(model)
    copy = put(row, before_there_were_purposes(settings))
    copy.save()
    with pytest.raises(SecretUnreadable):
        read(row)
    call_command("resourcepool_rotate_secrets", stdout=io.StringIO())
    assert read(row) == SECRET
    with pytest.raises(SecretUnreadable):
        read(put(other, stored(row)))


def test_old_secrets_of_fixtures_are_reencrypted_by_rotation(settings: Any) -> None:
    created()
    proxy = put(Proxy.objects.get(), before_there_were_purposes(settings))
    for loaded in serializers.deserialize("json", serializers.serialize("json", [proxy])):
        loaded.save()
    call_command("resourcepool_rotate_secrets", stdout=io.StringIO())
    assert read(proxy) == SECRET
    with pytest.raises(SecretUnreadable):
        read(put(new(Proxy), stored(proxy)))


def test_rotation_names_the_row_with_a_foreign_secret() -> None:
    created()
    token = stored(Proxy.objects.get())
    thief = put(new(Proxy), token)
    with pytest.raises(CommandError, match=rf"resourcepool.Proxy {thief.pk}: no key in"):
        call_command("resourcepool_rotate_secrets", stdout=io.StringIO())


def test_a_row_with_an_unreadable_secret_can_be_saved(settings: Any) -> None:
    created()
    proxy = Proxy.objects.get()
    before = stored(proxy)
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": [Fernet.generate_key().decode()]}
    proxy.notes = "slow"
    proxy.save()
    assert (Proxy.objects.get().notes, stored(proxy)) == ("slow", before)


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

"""Secrets are encrypted at rest, and never shown."""

import io
import logging
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import FieldError
from django.core.management import CommandError, call_command
from django.db import connection
from django.views.debug import ExceptionReporter

from resourcepool.encryption import rotation
from resourcepool.exceptions import AcquireTimeout, BadOption, LeaseLost, SecretUnreadable
from resourcepool.models import Proxy, Ticket
from tests.app.rows import columns, new, several, steal

BROKEN = "n0-fernet-key"
CANARY = "c4n4ry/pä:ss w@rd"
PART = CANARY[:6]


@pytest.fixture
def proxy() -> Any:
    return new(Proxy, username="user", password=CANARY)


def stored(proxy: Any) -> str:
    """Return the password as stored in the table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT password FROM resourcepool_proxy WHERE id = %s", [proxy.pk])
        return str(cursor.fetchone()[0])


@pytest.fixture
def keys(settings: Any) -> Any:
    """Set the keys in the settings."""

    def use(*chosen: Any) -> None:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": list(chosen)}

    return use


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("deep inside")


def a_key() -> str:
    return Fernet.generate_key().decode()


class TestAtRest:
    def test_empty_values_are_stored_unchanged(self) -> None:
        proxy = new(Proxy)
        assert stored(proxy) == ""
        assert Proxy.objects.get().password == ""

    def test_a_change_is_visible_at_once_and_stored_encrypted(self, proxy: Any) -> None:
        copy = Proxy.objects.get()
        copy.password = "another"
        assert copy.password == "another"
        copy.save()
        assert stored(proxy).startswith("sealed:")
        assert Proxy.objects.get().password == "another"

    def test_update_and_bulk_create_encrypt_as_well(self, proxy: Any) -> None:
        Proxy.objects.update(password="updated")
        Proxy.objects.bulk_create([Proxy(host="bulk", port=1, password="bulk")])
        assert [stored(row)[:7] for row in Proxy.objects.all()] == ["sealed:"] * 2
        assert sorted(row.password for row in Proxy.objects.all()) == ["bulk", "updated"]

    def test_a_secret_that_looks_encrypted_is_plain_text(self) -> None:
        proxy = new(Proxy, password="sealed:by the user")
        assert Proxy.objects.get().password == "sealed:by the user"
        assert "by the user" not in stored(proxy)

    @pytest.mark.parametrize(
        "lookup", ["password", "password__contains", "password__startswith", "password__in"]
    )
    def test_it_cannot_be_searched_for(self, proxy: Any, lookup: str) -> None:
        with pytest.raises(FieldError):
            Proxy.objects.filter(**{lookup: [CANARY]}).exists()


class TestInText:
    def test_only_url_contains_it(self, proxy: Any) -> None:
        proxy = Proxy.objects.get()
        assert proxy.url == f"http://user:c4n4ry%2Fp%C3%A4%3Ass%20w%40rd@{proxy.host}:3128"
        assert str(proxy) == proxy.masked_url == f"http://user:***@{proxy.host}:3128"
        for text in (repr(proxy), repr(proxy.__dict__), f"{proxy}", repr(Proxy.objects.values_list())):
            assert "c4n4ry" not in text

    @pytest.mark.parametrize(
        ("fields", "url"),
        [
            ({"host": "10.0.0.1", "port": 80}, "http://10.0.0.1:80"),
            ({"host": "2001:db8::1", "port": 80}, "http://[2001:db8::1]:80"),
            ({"host": "h", "port": 1, "scheme": "socks5h", "username": "a@b"}, "socks5h://a%40b@h:1"),
            ({"host": "h", "port": 1, "password": "p/w"}, "http://:p%2Fw@h:1"),
        ],
    )
    def test_url_is_valid_for_every_kind_of_proxy(self, fields: dict[str, Any], url: str) -> None:
        assert Proxy(**fields).url == url

    def test_logs_and_errors_of_a_lease_do_not_contain_it(
        self, proxy: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        said = []
        with caplog.at_level(logging.DEBUG):
            lease = Proxy.pool.acquire()
            said += [repr(lease), str(lease), repr(lease.resource), lease.resource.url and ""]
            steal(proxy)
            with pytest.raises(LeaseLost) as lost:
                lease.renew()
            with pytest.raises(AcquireTimeout) as late:
                Proxy.pool.acquire(timeout=0.02, username="user")
            with pytest.raises(BadOption) as bad:
                Proxy.pool.acquire(password=CANARY)
            said += [str(caught.value) + repr(caught.value) for caught in (lost, late, bad)]
        said += [record.getMessage() for record in caplog.records]
        said += list(capfd.readouterr())
        assert caplog.records
        assert not [text for text in said if "c4n4ry" in text]
        assert not Ticket.objects.filter(selector__contains="c4n4ry").exists()


class TestKeys:
    def test_a_wrong_key_raises_a_clear_error_on_access(self, proxy: Any, keys: Any) -> None:
        keys(a_key())
        with Proxy.pool.lease() as lease:
            assert str(lease.resource)
            with pytest.raises(SecretUnreadable, match=r"no key in .* decrypts this secret: a key was removed"):
                assert lease.resource.url

    @pytest.mark.parametrize("wrong", [[], [""], ["short"], [None], [b"x" * 31]])
    def test_a_missing_or_invalid_key_explains_how_to_create_one(self, keys: Any, wrong: list[Any]) -> None:
        keys(*wrong)
        with pytest.raises(SecretUnreadable, match=r"create (it|one) with: python -c .*generate_key"):
            new(Proxy, password=CANARY)
        assert new(Proxy).password == ""


def report_on(act: Callable[[], Any], error: type[Exception]) -> str:
    """Return the error report of ``act``, as Django mails it to the admins."""
    with pytest.raises(error) as caught:
        act()
    reporter = ExceptionReporter(None, caught.type, caught.value, caught.tb)
    said = str(reporter.get_traceback_html())
    assert "Local vars" in said
    return said


class TestErrorReports:
    @pytest.mark.parametrize("shape", [list, tuple, " ".join, dict.fromkeys, set])
    def test_a_broken_entry_shows_no_key_and_no_secret(self, proxy: Any, settings: Any, shape: Any) -> None:
        good = settings.RESOURCEPOOL["SECRET_KEYS"][0]
        settings.RESOURCEPOOL = {"SECRET_KEYS": shape([good, BROKEN])}
        loaded = Proxy.objects.get()
        for act in (
            lambda: loaded.password,
            lambda: loaded.url,
            lambda: setattr(loaded, "password", CANARY),
        ):
            said = report_on(act, SecretUnreadable)
            assert not [text for text in (good, BROKEN, PART) if text in said]

    def test_a_write_that_fails_shows_no_secret(self, proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        proxy.password = CANARY
        monkeypatch.setattr("django.db.models.sql.compiler.SQLUpdateCompiler.execute_sql", fail)
        assert PART not in report_on(proxy.save, RuntimeError)
        assert PART not in report_on(lambda: list(rotation.rotate_secrets()), RuntimeError)

    def test_an_instance_carries_no_text_before_and_after_it_is_saved(self) -> None:
        proxy = Proxy(host="a.example", port=80, password=CANARY)
        assert PART not in str(vars(proxy))
        proxy.save()
        assert PART not in str(vars(proxy))
        assert proxy.password == CANARY
        proxy.refresh_from_db()
        assert PART not in str(vars(proxy))


class TestRotation:
    def test_makes_the_old_key_unnecessary(self, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rotation, "CHUNK", 2)
        old, fresh = a_key(), a_key()
        keys(old)
        several(Proxy, 5, password=CANARY)
        new(Proxy)
        keys(fresh, old)
        for _ in range(2):
            out = io.StringIO()
            call_command("resourcepool_rotate_secrets", stdout=out)
            assert "resourcepool.Proxy.password: 5 re-encrypted" in out.getvalue()
        keys(fresh)
        assert [row.password for row in Proxy.objects.exclude(password__isnull=True)].count(CANARY) == 5

    def test_does_not_change_leases(self, proxy: Any) -> None:
        with Proxy.pool.lease() as lease:
            before = columns(proxy)
            call_command("resourcepool_rotate_secrets", stdout=io.StringIO())
            after = columns(proxy)
            assert {**before, "password": None} == {**after, "password": None}
            lease.renew()

    @pytest.mark.parametrize(("count", "more"), [(2, ""), (3, " ..")])
    def test_an_unreadable_secret_does_not_stop_the_rotation_of_others(
        self, keys: Any, monkeypatch: pytest.MonkeyPatch, count: int, more: str
    ) -> None:
        monkeypatch.setattr(rotation, "CHUNK", 2)
        monkeypatch.setattr(rotation, "MAX_NAMED_ROWS", 2)
        lost, old, fresh = a_key(), a_key(), a_key()
        keys(lost)
        gone = [row.pk for row in several(Proxy, count, password=CANARY)]
        keys(old)
        kept = several(Proxy, 3, password=CANARY)
        keys(fresh, old)
        before = stored(Proxy(pk=gone[0]))
        out = io.StringIO()
        with pytest.raises(CommandError) as refused:
            call_command("resourcepool_rotate_secrets", stdout=out)
        named = f"resourcepool.Proxy {gone[0]}, {gone[1]}{more}"
        assert f"{count} not re-encrypted: {named}: no key in" in str(refused.value)
        assert PART not in str(refused.value)
        assert refused.value.returncode == 1
        assert out.getvalue().splitlines()[-1] == "resourcepool.Proxy.password: 3 re-encrypted"
        assert stored(Proxy(pk=gone[0])) == before
        keys(fresh)
        assert {Proxy.objects.get(pk=row.pk).password for row in kept} == {CANARY}

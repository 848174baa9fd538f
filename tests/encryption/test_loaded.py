"""``loaddata`` restores the output of ``dumpdata``, including unreadable secrets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command

from resourcepool.exceptions import SecretUnreadable
from resourcepool.models import Proxy
from tests.app.models import Login
from tests.app.rows import columns, new

pytestmark = pytest.mark.django_db

Load = Callable[..., None]


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    for host in ("a.example", "b.example"):
        new(Proxy, host=host, password=f"of {host}")
    new(Proxy, host="c.example")
    Login.objects.create(name="a", secret="of a")
    file = tmp_path / "dump.json"
    call_command("dumpdata", "resourcepool.proxy", "testapp.login", output=str(file))
    assert "of a" not in file.read_text()
    for model in (Proxy, Login):
        model._base_manager.all()._raw_delete("default")
    return file


def tokens() -> dict[str, Any]:
    return {row.host: columns(row)["password"].token for row in Proxy.objects.exclude(host="c.example")}


def test_a_dump_is_restored_with_its_bindings(dumped: Path) -> None:
    call_command("loaddata", str(dumped))
    passwords = {"a.example": "of a.example", "b.example": "of b.example", "c.example": ""}
    assert {row.host: row.password for row in Proxy.objects.all()} == passwords
    assert Login.objects.get().secret == "of a"
    first, second, _ = Proxy.objects.order_by("host")
    Proxy.objects.filter(pk=second.pk).update(password=columns(first)["password"])
    with pytest.raises(SecretUnreadable):
        Proxy.objects.get(pk=second.pk).password  # noqa: B018 (reads it)


@pytest.mark.parametrize("keys", [[Fernet.generate_key().decode()], []])
def test_a_dump_is_restored_without_the_keys(dumped: Path, keys: list[str], settings: Any) -> None:
    before = settings.RESOURCEPOOL
    settings.RESOURCEPOOL = {**before, "SECRET_KEYS": keys}
    call_command("loaddata", str(dumped))
    with pytest.raises(SecretUnreadable):
        Proxy.objects.first().password  # type: ignore[union-attr]  # noqa: B018 (reads it)
    settings.RESOURCEPOOL = before
    assert Proxy.objects.get(host="a.example").password == "of a.example"


def test_a_broken_secret_does_not_affect_others(dumped: Path) -> None:
    rows = json.loads(dumped.read_text())
    rows[0]["fields"]["password"] = "sealed:nonsense"
    dumped.write_text(json.dumps(rows))
    call_command("loaddata", str(dumped))
    assert tokens()["a.example"] == "nonsense"
    assert Proxy.objects.get(host="b.example").password == "of b.example"


def test_plain_text_of_a_fixture_is_encrypted(dumped: Path) -> None:
    rows = json.loads(dumped.read_text())
    rows[0]["fields"]["password"] = "typed"
    dumped.write_text(json.dumps(rows))
    call_command("loaddata", str(dumped))
    assert tokens()["a.example"] != "typed"
    assert Proxy.objects.get(host="a.example").password == "typed"

"""Rows with a secret that is bound to its row."""

from typing import Any

from resourcepool.models import Proxy
from tests.app.models import Device, Login

SECRET = "c4nary-s3cret"
ADDRESS: dict[str, Any] = {"scheme": "http", "host": "a.example", "port": 80, "username": "joe"}
FIELD: dict[Any, str] = {Proxy: "password", Device: "pin", Login: "secret"}


def read(row: Any) -> str:
    """Return the secret as stored in the database."""
    return str(getattr(type(row)._base_manager.get(pk=row.pk), FIELD[type(row)]))


def created() -> None:
    """Create a proxy with its full address at once."""
    Proxy.objects.create(**ADDRESS, password=SECRET)

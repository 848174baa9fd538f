"""Imports proxies in tests, and reads the result."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.resources.import_result import ImportResult

ALL = "scheme,host,port,username,password,country,tags,weight,notes\n"


JOE = "http,a.example,80,joe,secret,us,eu fast,7,mine\n"


Import = Callable[..., ImportResult]


@pytest.fixture
def import_text(tmp_path: Path) -> Import:
    """Import this text as the file proxies.csv."""

    def import_text(text: str, **options: Any) -> ImportResult:
        file = tmp_path / "proxies.csv"
        file.write_text(text, encoding="utf-8")
        return ProxyImporter().run(str(file), **options)

    return import_text


def numbers(done: ImportResult) -> tuple[int, int, int, int]:
    return done.new, done.changed, done.unchanged, done.retired


def rows() -> list[dict[str, Any]]:
    """All proxies in the database."""
    return list(Proxy.objects.order_by("pk").values())


def hosts(**conditions: Any) -> list[str]:
    return sorted(Proxy.objects.filter(**conditions).values_list("host", flat=True))

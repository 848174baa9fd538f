"""All tests here use committed rows, a history, and secrets in the settings."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from resourcepool.history.recorder import recorder
from resourcepool.models import Proxy
from tests.canary.planted import CONTROLS, DATABASE, DATABASE_URLS, TARGET, TOKEN, found_in, plant
from tests.case_sample import has_its_turn
from tests.committed import transactional_db
from tests.frames import looked_into
from tests.proxies.health_check.servers import closed_port

__all__ = ["transactional_db"]


@pytest.fixture
def client() -> Client:
    """An operator who may do everything; errors are answered, not raised."""
    found = Client(raise_request_exception=False)
    found.force_login(User.objects.create_superuser("operator"))
    return found


@pytest.fixture(autouse=True)
def _secrets(settings: Any, transactional_db: None) -> Iterator[None]:
    checks = {"url": TARGET, "allow": ["127.0.0.0/8"], "timeout": 5}
    settings.RESOURCEPOOL = {
        **settings.RESOURCEPOOL,
        "HISTORY": True,
        "CHECKS": {"resourcepool.Proxy": checks},
    }
    settings.DATABASE_URL = DATABASE_URLS["mysql"]
    yield
    recorder.flush()


@pytest.fixture
def planted() -> Proxy:
    return plant()


@pytest.fixture
def checkable(planted: Proxy) -> Proxy:
    """Have one more proxy: it refuses connections, and nobody holds it."""
    made: Proxy = Proxy.objects.create(
        host="127.0.0.1", port=closed_port(), username="joe", password=planted.password
    )
    return made


@pytest.fixture(autouse=True)
def _no_frame_has_one(request: pytest.FixtureRequest, settings: Any, _secrets: None) -> Iterator[None]:
    """Whatever a test here does: no local variable of the package has a key, or an address with a secret.

    To look triples the time, so a run of everything looks at another third of these tests each time.
    """
    if not has_its_turn(request.node.nodeid, one_in=3):
        yield
        return
    with looked_into(TOKEN, DATABASE, *settings.RESOURCEPOOL["SECRET_KEYS"]) as found:
        yield
    assert not sorted(found)


@pytest.fixture(autouse=True)
def _nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test here does: no record of any level gives a secret away, its arguments and its error included."""
    caplog.set_level(logging.NOTSET)
    yield
    form = logging.Formatter("%(name)s %(message)s %(args)s")
    for when in ("setup", "call"):
        for record in caplog.get_records(when):  # type: ignore[arg-type]
            assert not found_in(form.format(record)), record.name
            is_ours = record.name.startswith("resourcepool")
            assert not is_ours or not CONTROLS & set(record.getMessage()), record.name

"""A real browser, a real server in another process, and somebody who is logged in."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from tests.browser.chromium import MISSING, chromium, logged_in
from tests.browser.serving import serve
from tests.committed import *  # noqa: F403 (fixtures)
from tests.spawned import Spawner


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if MISSING:
        pytest.skip(MISSING)
    # Playwright keeps an event loop in this thread, though nothing here is asynchronous.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with chromium() as running:
        yield running


@pytest.fixture
def session(transactional_db: None) -> Iterator[str]:
    """The session of a superuser."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    yield client.cookies[settings.SESSION_COOKIE_NAME].value
    User.objects.all().delete()
    Session.objects.all().delete()


@pytest.fixture
def window(browser: Any, session: str, spawn: Spawner) -> Callable[..., Any]:
    """Serve the project, and return a window on it: ``window()``; environment variables are the server's."""

    def opened(**environment: str) -> Any:
        port = spawn(serve, 1, **environment).line("port").split()[1]
        return logged_in(browser, f"http://127.0.0.1:{port}", session).new_page()

    return opened

"""A real browser, a real server in another process, and a logged-in user."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from tests.browser.chromium import MISSING, chromium, logged_in
from tests.browser.server import serve
from tests.committed import *  # noqa: F403 (fixtures)
from tests.spawned import Spawner


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One browser for all tests of this folder; each test has its own isolated windows."""
    if MISSING:
        pytest.skip(MISSING)
    with pytest.MonkeyPatch.context() as patch, chromium() as running:
        # Playwright runs an event loop in this thread, although the tests are synchronous.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
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
def tolerated() -> list[str]:
    """Prefixes of browser errors that a test expects; it adds them here."""
    return []


@pytest.fixture
def window(browser: Any, session: str, spawn: Spawner, tolerated: list[str]) -> Iterator[Callable[..., Any]]:
    """Serve the project, and return a window on it: ``window()``; environment variables are the server's.

    ``serving``: the function that serves it.

    What the browser complains about (errors of scripts, what the Content-Security-Policy refuses, answers that are
    missing) fails the test.
    """
    complaints: list[str] = []

    def note(message: Any) -> None:
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            complaints.append(message.text)

    contexts: list[Any] = []

    def opened(serving: Callable[..., object] = serve, **environment: str) -> Any:
        port = spawn(serving, 1, **environment).line("port").split()[1]
        contexts.append(logged_in(browser, f"http://127.0.0.1:{port}", session))
        page = contexts[-1].new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [one for one in complaints if not one.startswith(tuple(tolerated))] == []

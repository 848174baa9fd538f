"""Debian's Chromium, driven by Playwright; no download is needed."""

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

PROGRAMS = ("chromium-headless-shell", "chromium")  # the first has no window, and needs a third of the time


def program() -> str | None:
    """Return the path of the browser."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


try:
    from playwright.sync_api import Browser, sync_playwright
except ImportError:
    MISSING = "playwright is not installed (pip install playwright)"
else:
    MISSING = "" if program() else f"chromium is not installed (apt-get install {PROGRAMS[0]})"

PATIENCE = 30_000  # milliseconds, for a loaded machine


@contextlib.contextmanager
def chromium() -> Iterator["Browser"]:
    """Start a browser, and stop it at the end."""
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def logged_in(browser: "Browser", origin: str, session: str, **options: Any) -> Any:
    """Return a new window with this session's cookie."""
    context = browser.new_context(base_url=origin, **options)
    context.set_default_timeout(PATIENCE)
    context.add_cookies([{"name": "sessionid", "value": session, "url": origin}])
    return context

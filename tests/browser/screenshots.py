"""Take the pictures in docs/screenshots of a demo database in a temporary folder: ``make screenshots``.

To take only some: ``python -m tests.browser.screenshots resources resource-dark``.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

from tests.browser.chromium import MISSING, chromium, logged_in

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
DASHBOARD = "/admin/resourcepool/dashboard/"
PROXIES = "/admin/resourcepool/proxy/"
PHONE = {"viewport": {"width": 375, "height": 812}}
TALL = {"viewport": {"width": 1280, "height": 1100}}
LONG = ("resources", "events", "queues", "moves", "tasks", "timers")  # pictures of the top of the page only

Picture = tuple[str, str, dict[str, Any]]  # name, URL, options of the window
EMPTY: tuple[Picture, ...] = (("dashboard-empty", DASHBOARD, {"viewport": {"width": 1280, "height": 500}}),)
OF_POOLS: tuple[Picture, ...] = (
    ("dashboard", f"{DASHBOARD}?span=1h", {}),
    ("dashboard-day", f"{DASHBOARD}?span=24h", {}),
    ("dashboard-dark", DASHBOARD, {"color_scheme": "dark"}),
    ("dashboard-narrow", DASHBOARD, {"viewport": {"width": 390, "height": 844}}),
    ("resources", PROXIES, TALL),
    ("resources-dark", PROXIES, {**TALL, "color_scheme": "dark"}),
    ("resources-1024", PROXIES, {"viewport": {"width": 1024, "height": 768}}),
    ("resources-phone", PROXIES, PHONE),
    ("resource", f"{PROXIES}17/change/", {}),
    ("resource-dark", f"{PROXIES}37/change/", {"color_scheme": "dark"}),
    ("resource-phone", f"{PROXIES}17/change/", PHONE),
    ("revoke", f"{PROXIES}17/operate/revoke/", {}),
    ("quarantine-phone", f"{PROXIES}17/operate/quarantine/", PHONE),
    ("import", f"{PROXIES}import/", {}),
    ("events", "/admin/resourcepool/event/", {}),
)
# The same, with queues.
OF_QUEUES: tuple[Picture, ...] = (
    ("dashboard-queues", DASHBOARD, {}),
    ("dashboard-queues-dark", DASHBOARD, {"color_scheme": "dark"}),
    ("dashboard-queues-narrow", DASHBOARD, {"viewport": {"width": 390, "height": 844}}),
    ("servers", "/admin/resourcepool/server/?queue_group=orders", {}),
    ("queues", "/admin/resourcepool/queue/?queue_group=orders", {}),
    ("queue-groups", "/admin/resourcepool/queuegroup/", {}),
    ("moves", "/admin/resourcepool/move/?queue_group=orders", {}),
)
# The same, with streams, dispensers and timers.
OF_TASKS: tuple[Picture, ...] = (
    ("dashboard-tasks", DASHBOARD, {}),
    ("dashboard-tasks-dark", DASHBOARD, {"color_scheme": "dark"}),
    ("tasks", "/admin/resourcepool/task/", {}),
    ("timers", "/admin/resourcepool/timer/", {}),
    ("dispensers", "/admin/resourcepool/dispenser/", {}),
)
# The same, with locks and channels.
OF_LOCKS: tuple[Picture, ...] = (
    ("dashboard-locks", DASHBOARD, {}),
    ("dashboard-locks-dark", DASHBOARD, {"color_scheme": "dark"}),
    ("dashboard-locks-narrow", DASHBOARD, {"viewport": {"width": 390, "height": 844}}),
    ("locks", "/admin/resourcepool/lock/", {}),
    ("lock", "/admin/resourcepool/lock/orders/change/", {}),
    ("lock-phone", "/admin/resourcepool/lock/orders/change/", PHONE),
    ("revoke-holder", "/admin/resourcepool/lock/orders/operate/revoke-holder/", {}),
    ("semaphores", "/admin/resourcepool/semaphorepermit/", {}),
    ("conditions", "/admin/resourcepool/conditionwaiter/", {}),
    ("channels", "/admin/resourcepool/channel/", {}),
    ("subscriptions", "/admin/resourcepool/subscription/", {}),
)


def main() -> None:
    if MISSING:
        raise SystemExit(MISSING)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="resourcepool-screenshots-") as folder, server(folder) as origin:
        from django.test import Client

        from tests.browser import demo_data, demo_locks, demo_tasks

        client = Client()
        client.force_login(demo_data.operator())
        session = client.cookies["sessionid"].value
        with chromium() as browser:
            of_pools = (demo_data.proxies, demo_data.devices, demo_data.day, demo_data.counted, demo_data.jobs)
            for fills, pictures in (
                ((), EMPTY),
                (of_pools, OF_POOLS),
                ((demo_data.queues,), OF_QUEUES),
                ((demo_tasks.fill,), OF_TASKS),
                ((demo_locks.fill,), OF_LOCKS),
            ):
                for fill in fills:
                    fill()
                for picture in pictures:
                    if not sys.argv[1:] or picture[0] in sys.argv[1:]:  # named on the command line, or none is
                        take(browser, origin, session, *picture)


@contextmanager
def server(folder: str) -> Iterator[str]:
    """Serve an empty database in another process; yields the origin."""
    url = f"sqlite:///{folder}/db.sqlite3"
    # Playwright runs an event loop in this thread, although this script is synchronous.
    os.environ |= {
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "tests.browser.settings",
        "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
    }
    django.setup()
    from django.core.management import call_command

    from resourcepool.dashboard import views
    from tests.browser.server import serve
    from tests.spawned import Spawner

    call_command("migrate", verbosity=0, run_syncdb=True)
    spawner = Spawner(url)
    try:
        yield f"http://127.0.0.1:{spawner(serve, views.REFRESH_EVERY).line('port').split()[1]}"
    finally:
        spawner.close()


def take(browser: Any, origin: str, session: str, name: str, address: str, options: dict[str, Any]) -> None:
    with logged_in(
        browser, origin, session, **{"viewport": {"width": 1280, "height": 800}, **options}
    ) as context:
        page = context.new_page()
        answer = page.goto(address)
        assert answer.ok, f"{address}: {answer.status}"
        page.wait_for_load_state("networkidle")  # charts are fetched
        page.screenshot(path=FOLDER / f"{name}.png", full_page=not name.startswith(LONG))
    print(f"docs/screenshots/{name}.png", file=sys.stderr)


if __name__ == "__main__":
    main()

"""The project on a real port, under the strictest Content-Security-Policy that Django's admin supports."""

import contextlib
import os
import threading
from typing import Any

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application

import project.urls  # noqa: F401 (imported once, by the process whose forks serve)
from resourcepool.dashboard import views

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"


class Handler(WSGIRequestHandler):
    """A handler that does not log requests."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (named by the base class)
        pass


def serve(every: float) -> None:
    """Print the port and serve until the process ends; the dashboard refreshes every ``every`` seconds."""
    views.REFRESH_EVERY = every
    server = ThreadedWSGIServer(("127.0.0.1", 0), Handler)
    server.set_app(strict(StaticFilesHandler(get_wsgi_application())))
    print(f"port {server.server_port}", flush=True)
    server.serve_forever()


def strict(application: Any) -> Any:
    """Add the policy to every response."""

    def answer(environ: Any, start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, ("Content-Security-Policy", POLICY)], *rest)

        return application(environ, start)

    return answer


def work(seconds: float) -> None:
    """Run four processes that acquire, briefly hold and release proxies until they are interrupted."""
    from resourcepool.models import Proxy

    for _ in range(3):
        if os.fork() == 0:
            break
    else:
        print("working", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            with Proxy.pool.lease(timeout=60):
                threading.Event().wait(seconds)

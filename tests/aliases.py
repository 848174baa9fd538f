"""Temporary entries in DATABASES: the test's database with other settings, or another server."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import dj_database_url
from django.core.checks import CheckMessage, run_checks
from django.db import connection, connections
from django.test import override_settings

from resourcepool.leases.keeper import keeper
from resourcepool.leases.models import AbstractLease


class To:
    """A router that sends leased models to ``alias``, and leaves the others alone."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def db_for_write(self, model: type, **hints: Any) -> str | None:
        return self.alias if issubclass(model, AbstractLease) else None


@contextlib.contextmanager
def alias(name: str, leased: bool = True, **settings: Any) -> Iterator[str]:
    """Add a database to DATABASES: like the default one, but for these settings; OPTIONS are replaced one by one.

    An option of None is left out. Unless not ``leased``, the routers send all leased models there.
    """
    usual = connection.settings_dict
    options = {**usual["OPTIONS"], **settings.pop("OPTIONS", {})}
    chosen = {name: value for name, value in options.items() if value is not None}
    entry = {**usual, "OPTIONS": chosen, **settings}
    routers = [To(name)] if leased else []
    with mock.patch.dict(connections.settings, {name: entry}), override_settings(DATABASE_ROUTERS=routers):
        try:
            yield name
        finally:
            for lease in keeper.unreleased():  # nobody could renew them, and each attempt would be logged
                if lease.using == name:
                    keeper.remove(lease)
            connections[name].close()
            if (driver := connections[name].connection) is not None:  # Django does not close one in memory
                driver.close()
            del connections[name]


def at(url: str) -> dict[str, Any]:
    """Return where the server behind this DATABASE_URL is, as settings for ``alias``."""
    place = dj_database_url.parse(url)
    return {key: place[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}


def messages(*names: str) -> list[CheckMessage]:
    """Return what the system checks say with ``--database`` for each of these aliases."""
    return run_checks(tags=["resourcepool"], databases=list(names))


def codes(*names: str) -> set[str]:
    """Return the ids among ``messages``, without what comes before the dot."""
    return {str(message.id).partition(".")[2] for message in messages(*names)}

"""Connections of background threads: their own, with short timeouts."""

import contextlib

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.supported import of

LOCK_WAIT = 1  # whole seconds that a background thread waits for a locked row

# Strong references: collecting a connection of the parent's threads in a child would close it.
opened: list[BaseDatabaseWrapper] = []
descriptors: dict[int, int] = {}  # {id of the driver's connection: its socket}


def private_connection(alias: str) -> BaseDatabaseWrapper:
    """Return a new connection to ``alias`` for one background thread, with short timeouts."""
    connection = connections.create_connection(alias)
    dialect = of(connection)
    options = {**connection.settings_dict["OPTIONS"], **dialect.timeouts}
    options.pop("pool", None)
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": None}
    initialise = connection.init_connection_state

    def initialise_and_limit() -> None:
        initialise()
        driver = connection.connection
        if hasattr(driver, "fileno"):
            descriptors[id(driver)] = driver.fileno()
        if dialect.lock_wait:
            with connection.cursor() as cursor:
                cursor.execute(dialect.lock_wait, [LOCK_WAIT])

    # Django has no per-connection hook; the connection_created signal would reach every connection.
    setattr(connection, "init_connection_state", initialise_and_limit)  # noqa: B010
    opened.append(connection)
    return connection


def close_quietly(connection: BaseDatabaseWrapper) -> None:
    """End the session of ``connection``, whatever state it is in."""
    descriptors.pop(id(connection.connection), None)
    with contextlib.suppress(DatabaseError, InterfaceError):
        connection.close()

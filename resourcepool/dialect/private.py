"""Connections beside Django's, one thread's own, with short timeouts."""

import contextlib

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.supported import of, supports

LOCK_WAIT = 1  # whole seconds that a background thread waits for a locked row

opened: list[BaseDatabaseWrapper] = []
descriptors: dict[int, int] = {}  # {id of the driver's connection: its socket}


def private_connection(alias: str, *, is_hasty: bool = True) -> BaseDatabaseWrapper:
    """Return a new connection to ``alias`` for one thread, with short timeouts if its database is supported.

    Args:
        is_hasty: waits for a locked row only for a moment; else as long as the project's settings say.
    """
    connection = connections.create_connection(alias)
    # Strong references: collecting a connection of the parent's threads in a child would close it.
    opened.append(connection)
    if not supports(connection):  # holds no leases; a receiver of a signal may use it
        return connection
    dialect = of(connection)
    options = {**connection.settings_dict["OPTIONS"], **dialect.timeouts}
    if is_hasty:
        options |= dialect.lock_options
    options.pop("pool", None)
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": None}
    initialise = connection.init_connection_state

    def initialise_and_limit() -> None:
        initialise()
        driver = connection.connection
        if hasattr(driver, "fileno"):
            descriptors[id(driver)] = driver.fileno()
        if is_hasty:
            limit_lock_waits(connection)

    # Django has no per-connection hook; the connection_created signal would reach every connection.
    setattr(connection, "init_connection_state", initialise_and_limit)  # noqa: B010
    return connection


def limit_lock_waits(connection: BaseDatabaseWrapper) -> None:
    """Have this session wait for a locked row only for a moment."""
    statement = of(connection).lock_wait
    if statement:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"seconds": LOCK_WAIT})


def close_quietly(connection: BaseDatabaseWrapper) -> None:
    """End the session of ``connection``, whatever state it is in."""
    descriptors.pop(id(connection.connection), None)
    with contextlib.suppress(DatabaseError, InterfaceError):
        connection.close()

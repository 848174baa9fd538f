"""The only package that knows the differences between databases: clocks, fence arithmetic, errors.

The sources are in docs/operations/databases.md. All SQL here takes times as whole microseconds.
"""

from resourcepool.dialect.base import Dialect, ErrorKind, RowUpdate, micros
from resourcepool.dialect.connections import (
    close_files,
    close_own_session,
    close_quietly,
    discard,
    drop_inherited_connections,
    is_socket_known,
    limit_connect_time,
    limit_lock_waits,
    may_connect,
    private_connection,
    redirect_to_devnull,
    remember_socket,
    shutdown_socket,
)
from resourcepool.dialect.expressions import (
    DbLater,
    DbMicros,
    DbNow,
    FenceField,
    KeyField,
    MicrosUntil,
    NullInOrder,
    aware,
    for_project,
    from_columns,
    in_columns,
    read_clock,
)
from resourcepool.dialect.lookups import Begins
from resourcepool.dialect.per_database import cached_per_database
from resourcepool.dialect.statement import all_rows, first_row, row_count, run
from resourcepool.dialect.supported import error_kind, of, refuses_text, supports, violates
from resourcepool.dialect.transactions import SHORT_LOCK_WAIT, limit_idle, short_transaction

__all__ = [
    "SHORT_LOCK_WAIT",
    "Begins",
    "DbLater",
    "DbMicros",
    "DbNow",
    "Dialect",
    "ErrorKind",
    "FenceField",
    "KeyField",
    "MicrosUntil",
    "NullInOrder",
    "RowUpdate",
    "all_rows",
    "aware",
    "cached_per_database",
    "close_files",
    "close_own_session",
    "close_quietly",
    "discard",
    "drop_inherited_connections",
    "error_kind",
    "first_row",
    "for_project",
    "from_columns",
    "in_columns",
    "is_socket_known",
    "limit_connect_time",
    "limit_idle",
    "limit_lock_waits",
    "may_connect",
    "micros",
    "of",
    "private_connection",
    "read_clock",
    "redirect_to_devnull",
    "refuses_text",
    "remember_socket",
    "row_count",
    "run",
    "short_transaction",
    "shutdown_socket",
    "supports",
    "violates",
]

"""The only package that knows the differences between databases: clocks, fence arithmetic, errors.

The sources are in docs/operations/databases.md. All SQL here takes times as whole microseconds.
"""

from resourcepool.db.dialect.base import Dialect, ErrorKind, RowUpdate, micros
from resourcepool.db.dialect.connections import (
    close_files,
    close_own_session,
    close_quietly,
    discard,
    drop_inherited_connections,
    error_kind,
    limit_lock_waits,
    of,
    private_connection,
    redirect_to_devnull,
    refuses_text,
    remember_own_session,
    shutdown_socket,
    supports,
)
from resourcepool.db.dialect.fields import (
    Begins,
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
from resourcepool.db.dialect.statement import (
    all_rows,
    cached_per_database,
    first_row,
    row_count,
    run,
    run_for_number,
)

__all__ = ["Begins", "DbLater", "DbMicros", "DbNow", "Dialect", "ErrorKind", "FenceField", "KeyField"]
__all__ += ["MicrosUntil", "NullInOrder", "RowUpdate", "all_rows", "aware", "cached_per_database"]
__all__ += ["close_files", "close_own_session", "close_quietly", "discard", "drop_inherited_connections"]
__all__ += ["error_kind", "first_row", "for_project", "from_columns", "in_columns", "limit_lock_waits"]
__all__ += ["micros", "of", "private_connection", "read_clock", "redirect_to_devnull", "refuses_text"]
__all__ += [
    "remember_own_session",
    "row_count",
    "run",
    "run_for_number",
    "shutdown_socket",
    "supports",
]

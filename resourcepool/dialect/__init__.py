"""The only package that knows which database it talks to: its clock, its fence arithmetic, its errors.

Facts and their sources are in docs/databases.md. Every SQL text here takes moments as whole microseconds.
"""

from resourcepool.dialect.base import Dialect, RowUpdate, Trouble, micros
from resourcepool.dialect.beginning import Begins
from resourcepool.dialect.connections import (
    abandon_inherited_connections,
    close_files,
    close_ours,
    close_quietly,
    connecting_within,
    discard,
    hang_up,
    is_socket_known,
    know_socket,
    limit_lock_waits,
    may_connect,
    point_at_nothing,
    private_connection,
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
from resourcepool.dialect.statement import all_rows, row_count, run
from resourcepool.dialect.supported import of, refuses_text, supports, trouble, violates
from resourcepool.dialect.transactions import BRIEF, brief_transaction, limit_idle

__all__ = [
    "BRIEF",
    "Begins",
    "DbLater",
    "DbMicros",
    "DbNow",
    "Dialect",
    "FenceField",
    "KeyField",
    "MicrosUntil",
    "NullInOrder",
    "RowUpdate",
    "Trouble",
    "abandon_inherited_connections",
    "all_rows",
    "aware",
    "brief_transaction",
    "close_files",
    "close_ours",
    "close_quietly",
    "connecting_within",
    "discard",
    "for_project",
    "from_columns",
    "hang_up",
    "in_columns",
    "is_socket_known",
    "know_socket",
    "limit_idle",
    "limit_lock_waits",
    "may_connect",
    "micros",
    "of",
    "point_at_nothing",
    "private_connection",
    "read_clock",
    "refuses_text",
    "row_count",
    "run",
    "supports",
    "trouble",
    "violates",
]

"""The only package that knows which database it talks to: its clock, its fence arithmetic, its errors.

Facts and their sources are in docs/databases.md. Every SQL text here takes moments as whole microseconds.
"""

from resourcepool.dialect.base import Dialect, RowUpdate, Trouble, micros
from resourcepool.dialect.brief import BRIEF, brief_transaction
from resourcepool.dialect.clock import read_clock
from resourcepool.dialect.expressions import DbLater, DbMicros, DbNow, MicrosUntil
from resourcepool.dialect.fields import FenceField, KeyField
from resourcepool.dialect.forks import abandon_inherited_connections, close_files, point_at_nothing
from resourcepool.dialect.hanging_up import (
    close_ours,
    connecting_within,
    hang_up,
    is_socket_known,
    know_socket,
    may_connect,
)
from resourcepool.dialect.idle import limit_idle
from resourcepool.dialect.private import close_quietly, discard, limit_lock_waits, private_connection
from resourcepool.dialect.sessions import Session
from resourcepool.dialect.statement import all_rows, row_count, run
from resourcepool.dialect.supported import of, supports, trouble

__all__ = [
    "BRIEF",
    "DbLater",
    "DbMicros",
    "DbNow",
    "Dialect",
    "FenceField",
    "KeyField",
    "MicrosUntil",
    "RowUpdate",
    "Session",
    "Trouble",
    "abandon_inherited_connections",
    "all_rows",
    "brief_transaction",
    "close_files",
    "close_ours",
    "close_quietly",
    "connecting_within",
    "discard",
    "hang_up",
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
    "row_count",
    "run",
    "supports",
    "trouble",
]

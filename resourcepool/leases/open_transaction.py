"""A caller's transaction, as the keeper needs to know it: a row it has locked cannot be renewed meanwhile."""

from django.db.backends.base.base import BaseDatabaseWrapper


class OpenTransaction:
    """One particular transaction of this process, as another thread sees it."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection, self._outermost = connection, connection.atomic_blocks[0]

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> "OpenTransaction | None":
        """Return the transaction that is open on ``connection``, if any."""
        return cls(connection) if connection.atomic_blocks else None

    @property
    def is_open(self) -> bool:
        """Whether it still runs; a later one on the same connection is another one."""
        return self._connection.atomic_blocks[:1] == [self._outermost]

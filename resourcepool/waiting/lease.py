"""The handle of a row that others may be waiting for."""

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.waiting import handover


class AwaitedLease(Lease):
    """A lease whose release gives the row straight to the first in line. See ``Lease``."""

    def load(self) -> None:
        """Read lazy values now."""

    @staticmethod
    def were_released(using: str, model: Model) -> None:
        """Give free rows to the waiters."""
        handover.give_out_quietly(using, model)

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if self.terms.cooldown:  # nobody may have it yet; it is given out after the cool-down
            return super()._send_release(connection)
        until = self.trust.until
        return handover.release(connection, self.model, self.pk, self.fence, trusted_until=until)

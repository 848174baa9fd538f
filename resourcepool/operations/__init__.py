"""What operators can do, declared once; the admin and the commands render it.

A project adds its own in ``AppConfig.ready``: ``OPERATIONS["reboot"] = Operation(name="reboot", ..)``.
"""

from resourcepool.operations.fields import DurationField, Field, TextField
from resourcepool.operations.operation import Operation, by_name
from resourcepool.operations.resources import ALL

OPERATIONS = by_name(*ALL)

__all__ = ["OPERATIONS", "DurationField", "Field", "Operation", "TextField"]

"""The operations of operators, declared once and rendered by the admin, the commands and the REST API.

A project adds its own in ``AppConfig.ready``: ``OPERATIONS["reboot"] = Operation(name="reboot", ..)``.
"""

from resourcepool.operations.operation import DurationField, Field, Operation, TextField, by_name
from resourcepool.operations.resources import ALL

OPERATIONS = by_name(*ALL)

__all__ = ["OPERATIONS", "DurationField", "Field", "Operation", "TextField"]

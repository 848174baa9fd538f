"""What operators can do to resources: each act is declared once; admin, commands and REST render it.

A project adds its own in ``AppConfig.ready``: ``OPERATIONS["reboot"] = Operation(name="reboot", ..)``.
"""

from resourcepool.operations.fields import Field, Line, Span
from resourcepool.operations.operation import Operation
from resourcepool.operations.resources import ALL

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in ALL}

__all__ = ["OPERATIONS", "Field", "Line", "Operation", "Span"]

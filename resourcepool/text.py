"""Columns for any Unicode text, whatever the database's character set; and what of a text can be shown."""

import json
import re
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

if TYPE_CHECKING:
    _Field = models.Field[Any, Any]
    _CharField = models.CharField[Any, Any]
    _TextField = models.TextField[Any, Any]
else:  # Django's fields take no type parameters when they run
    _Field, _CharField, _TextField = object, models.CharField, models.TextField

MAX_LISTED = 20  # names in a text


class _Alike(type):
    """Makes Django's own field an instance of ours, because expressions only combine fields of one class."""

    def __instancecheck__(cls, instance: object) -> bool:
        is_own = cls.__module__ == __name__ and type(instance) in cls.__bases__
        return is_own or super().__instancecheck__(instance)


class UnicodeCollationMixin(_Field):
    """Sets the column's collation, and so its character set, on databases where each column has its own."""

    mysql_collation = "utf8mb4_unicode_520_ci"

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql" and not parameters.get("collation"):
            parameters["collation"] = self.mysql_collation
        return parameters


class CharField(UnicodeCollationMixin, _CharField, metaclass=_Alike):
    """Django's field of this name, for any Unicode text."""


class TextField(UnicodeCollationMixin, _TextField, metaclass=_Alike):
    """Django's field of this name, for any Unicode text."""


def ascii_escaped(text: str) -> str:
    r"""Return ``text`` with non-ASCII characters escaped as in JSON (\u540d), for a database that cannot store them."""
    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text)


def printable(value: object, instead: str = "?") -> str:
    """Return ``str(value)`` as one line, with ``instead`` for unprintable characters, which a terminal might obey."""
    return "".join(c if c.isprintable() else instead for c in str(value))


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Return a key by which "req-2" comes before "req-10"."""
    parts = re.split(r"([0-9]{1,18})", text)
    return [(0, int(part), "") if at % 2 else (1, 0, part) for at, part in enumerate(parts)]


def shortened(text: str, most: int) -> str:
    """Return ``text``, cut to ``most`` characters, the last of which are "..." then."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def host_name() -> str:
    """Return this host's name as 1 to 80 printable characters, whatever the system says."""
    name = printable(socket.gethostname(), "_").replace("/", "_")
    return name.strip()[:80].strip() or "unnamed"


def join_names(names: Sequence[str]) -> str:
    """Return the first names as text: "web-1, web-2, ..."."""
    more = ", ..." if len(names) > MAX_LISTED else ""
    return ", ".join(printable(name) for name in names[:MAX_LISTED]) + more


def format_labels(labels: Mapping[str, str]) -> str:
    """Return labels as text: "zone=eu, disk=ssd"."""
    return ", ".join(f"{key}={value}" for key, value in labels.items())

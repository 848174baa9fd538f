"""What one line of an imported file says: a proxy, or what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.translation import gettext_noop as _

from resourcepool.encryption.sealed import Sealed
from resourcepool.events import Sentence
from resourcepool.proxies.fields import CHECKS, BadField

Identity = tuple[str, str, int, str]  # scheme, host, port, user name

IDENTITY = ("scheme", "host", "port", "username")
DETAILS = ("password", "country", "tags", "weight", "notes")


@dataclass(frozen=True, slots=True)
class Row:
    """A proxy in the file. Its password is text as long as it is read and sealed before it is stored."""

    line: int
    scheme: str
    host: str
    port: int
    username: str
    password: str | Sealed = field(repr=False)
    country: str
    tags: str
    weight: int
    notes: str

    @property
    def identity(self) -> Identity:
        """What tells two proxies apart."""
        return self.scheme, self.host, self.port, self.username


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no proxy. Says which field and why; ``host`` only if the line's address made sense."""

    line: int
    field: str
    reason: str
    host: str = ""

    def __str__(self) -> str:
        where = {"count": self.line, "field": self.field, "why": self.reason}
        if self.host:
            return Sentence(_("line %(count)s (%(host)s): %(field)s: %(why)s"), host=self.host, **where)
        return Sentence(_("line %(count)s: %(field)s: %(why)s"), **where)


def row(line: int, cells: Mapping[str, str]) -> Row | BadLine:
    """Return what ``cells`` ({column: text}; absent ones are empty) of line number ``line`` say."""
    values = {}
    for name, check in CHECKS.items():
        try:
            values[name] = check(cells.get(name, ""))
        except BadField as error:
            # Where the address itself is wrong, what stands in the host's place may be anything.
            host = "" if name in IDENTITY else values["host"]
            return BadLine(line, error.field, error.reason, host)
    return Row(line, **values)

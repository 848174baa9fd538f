"""The service that RESOURCEPOOL["HINTS"] selects."""

import contextlib
import functools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import connections
from django.utils.module_loading import import_string
from django.views.decorators.debug import sensitive_variables

from resourcepool.conf import setting
from resourcepool.exceptions import BadOption, Hidden, PackageMissing

TIMEOUT = 1.0  # seconds for connecting and for each reply, where the client supports it


class Transport(ABC):
    """A connection of one thread to a service. Connects on first use; methods raise the errors of the client.

    After an error, ``close`` is called, and the next use connects again.
    """

    @abstractmethod
    def send(self, addresses: Sequence[str]) -> None:
        """Send a hint to each of these addresses, in one batch if possible, whether or not a process listens."""

    def max_per_second(self) -> float:
        """Return the rate, of all processes together, above which hints cost more than they save."""
        return math.inf

    @abstractmethod
    def subscribe(self, address: str) -> None:
        """Subscribe; returns when every later hint to ``address`` will reach ``receive``."""

    @abstractmethod
    def receive(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds; return whether a hint or an echo arrived."""

    @abstractmethod
    def echo(self) -> None:
        """Request an echo, to detect a subscription that no longer delivers."""

    @abstractmethod
    def close(self) -> None:
        """End the session, whatever its state."""

    def abandon(self) -> None:  # noqa: B027 (most clients detect a fork themselves)
        """In a forked child: drop the parent's session without sending anything to the service."""


NAME = "RESOURCEPOOL['HINTS']"
ALLOWED = "None, 'postgresql', 'postgresql:<alias in DATABASES>', a Redis URL or the URL of another broker"
REDIS = ("redis", "rediss", "unix")
TRANSPORTS = {
    "postgresql": "resourcepool.hints.postgresql.PostgreSQL",
    **dict.fromkeys(REDIS, "resourcepool.hints.redis.Redis"),
}


@dataclass(frozen=True)
class Choice:
    """A service that carries hints; ``target`` may contain a password and is never shown."""

    service: str
    target: str = field(repr=False)

    @property
    def redacted(self) -> str:
        """The setting without secrets."""
        return f"postgresql:{self.target}" if self.service == "postgresql" else f"{self.service}://..."

    @sensitive_variables()
    def open(self) -> Transport:
        """Return a transport, not yet connected; raises BadOption if this process cannot use the service."""
        self.check_usable()
        return self.client()(self.target)

    def client(self) -> Callable[[str], Transport]:
        """Return the transport class, imported when it is used: its client is optional; raises ImportError."""
        path = TRANSPORTS.get(self.service, "resourcepool.hints.broker.Broker")
        transport: Callable[[str], Transport] = import_string(path)
        return transport

    @sensitive_variables()
    def check_usable(self) -> None:
        """Raise BadOption if the client rejects the URL or the database is not PostgreSQL, PackageMissing if there is
        no client."""
        try:
            if self.service == "postgresql":
                problem = _problem_of_database(self.target)
            elif self.service in REDIS:
                problem = _problem_of_redis(self.target)
            else:
                problem = _problem_of_broker(self.service)
        except ImportError:
            client = "redis-py" if self.service in REDIS else "kombu"
            package = "redis" if self.service in REDIS else "celery"
            why = f"{client} is not installed: pip install {package}"
            raise PackageMissing(NAME, Hidden(), because=why) from None
        if problem:
            raise BadOption(NAME, self.redacted, because=problem)


@sensitive_variables()
def configured() -> Choice | None:
    """Return the service in the settings, None for no hints; raises BadOption for an invalid setting."""
    value = setting("HINTS")
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadOption(NAME, type(value).__name__, ALLOWED)
    return parse_choice(value)


def load() -> None:
    """Import the client before this process forks, so that not every child imports it."""
    with contextlib.suppress(BadOption, ImportError):  # reported by a system check
        if choice := configured():
            choice.client()


@functools.lru_cache(maxsize=16)
@sensitive_variables()
def parse_choice(value: str) -> Choice:
    """Parse the setting; raises BadOption, which contains no secrets."""
    service, colon, alias = value.partition(":")
    if service == "postgresql" and not alias.startswith("//"):
        if colon and not re.fullmatch(r"[\w.-]+", alias):
            raise BadOption(NAME, "postgresql:...", ALLOWED)
        return Choice("postgresql", alias or "default")
    scheme, separator, _ = value.partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+]*", scheme):
        raise BadOption(NAME, "...", ALLOWED)
    if scheme.startswith("postgres"):
        raise BadOption(NAME, f"{scheme}://...", ALLOWED)
    return Choice(scheme, value)


def _problem_of_database(alias: str) -> str | None:
    if alias not in connections.settings:
        return f"DATABASES has no {alias!r}"
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return f"database {alias!r} is {connection.vendor}; only PostgreSQL carries hints"
    version = getattr(getattr(connection, "Database", None), "__version__", "")
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < (3, 2):
        return f"hints need psycopg 3.2 or newer, not {version}: pip install 'psycopg>=3.2'"
    return None


def _problem_of_redis(url: str) -> str | None:
    from redis import connection

    try:
        connection.parse_url(url)  # type: ignore[no-untyped-call]
    except ValueError:  # its message may contain the password
        return "redis-py rejects this URL; expected a form like redis://user:password@host:6379/0"
    return None


def _problem_of_broker(scheme: str) -> str | None:
    from kombu.transport import TRANSPORT_ALIASES

    if scheme.lower().split("+")[0] in (name.lower() for name in TRANSPORT_ALIASES):
        return None
    return "unknown kombu broker; use amqp, amqps, sentinel or another one that kombu supports"

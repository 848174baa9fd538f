"""All exceptions of this package; ``except ResourcePoolError`` catches every one."""

from typing import Any

from resourcepool.events import sentence_for


class ResourcePoolError(Exception):
    """The root of every error raised by resourcepool."""


class Hidden:
    """Placeholder for a value that may be a secret, so no error shows it."""

    def __repr__(self) -> str:
        return "(not shown)"


class BadOption(ResourcePoolError, ValueError):
    """An option has a value that is not allowed.

    Args:
        value: shown in the message, unless it is ``Hidden``.
        allowed: what the value must be: "a JSON object".
        because: instead of ``allowed``: why it is refused: "already exists in orders".
    """

    def __init__(self, name: str, value: object, allowed: str = "", because: str = "") -> None:
        self.name, self.value, self.allowed, self.because = name, value, allowed, because
        if isinstance(value, Hidden):
            super().__init__(sentence_for("about", name=name, why=self.why))
        else:
            super().__init__(sentence_for("not_allowed", name=name, value=_shown(value), why=self.why))

    @property
    def why(self) -> str:
        """The reason: "it must be a JSON object"."""
        return self.because or sentence_for("must_be", allowed=self.allowed)

    def of(self, name: str) -> "BadOption":
        """Return a copy for an option named ``name``."""
        return type(self)(name, self.value, self.allowed, self.because)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.value, self.allowed, self.because)


class PackageMissing(BadOption):
    """A setting needs a package that is not installed; the message has the command that installs it."""


class AcquireTimeout(ResourcePoolError, TimeoutError):
    """No matching resource became free within the timeout."""


class LeaseLost(ResourcePoolError):
    """The lease is no longer held: it expired, was revoked, or was not confirmed in time."""

    def again(self) -> "LeaseLost":
        """Return a copy to raise: an exception raised repeatedly collects the frames of each raise."""
        return type(self)(*self.args)


class LeaseReleased(LeaseLost):
    """The handle was used after its lease was released."""


class NotHeld(ResourcePoolError, RuntimeError):
    """A thread, task or process tried to release more than it holds."""


class UpgradeConflict(ResourcePoolError, RuntimeError):
    """Upgrading from reading to writing would deadlock: with the reader itself or another upgrading reader."""


class LeaseFromAnotherProcess(ResourcePoolError):
    """A handle was used in a forked child; the parent still holds the lease."""


class QueueBusy(ResourcePoolError):
    """Another thread works on this queue, or its work is paused."""


class ClaimInTransaction(ResourcePoolError):
    """A lease was requested inside an open transaction: other processes would not see it until the commit."""


class ChannelFull(ResourcePoolError):
    """A durable subscription is more than ``most`` messages behind."""


class MessagesMissed(ResourcePoolError):
    """Messages of a channel were removed before a subscriber read them; reading continues after them.

    Attributes:
        channel, subscription: the names; ``subscription`` is "" for an unnamed subscriber.
        first, last: numbers of the first and the last missed message.
    """

    def __init__(self, channel: str, subscription: str, first: int, last: int) -> None:
        who = f"subscription {subscription!r}" if subscription else "an unnamed subscriber"
        super().__init__(
            f"channel {channel!r}: messages {first} to {last} ({last - first + 1}) were removed before {who} read them"
        )
        self.channel, self.subscription, self.first, self.last = channel, subscription, first, last

    @property
    def count(self) -> int:
        """Number of missed messages."""
        return self.last - self.first + 1

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.channel, self.subscription, self.first, self.last)


class GuardOutsideTransaction(ResourcePoolError):
    """``guard`` was used without an open transaction."""


class DatabaseUnavailable(ResourcePoolError):
    """The database could not be reached, stayed busy through all retries, or refused; the message says which.

    Attributes:
        is_login: the user, the password or the database name was refused.
    """

    is_login = False


class RowLocked(DatabaseUnavailable):
    """Rows were not changed, because another transaction has them locked.

    Attributes:
        done: number of other rows that were changed.
    """

    def __init__(self, message: str, done: int = 0) -> None:
        super().__init__(message)
        self.done = done

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.done)


class NotMigrated(ResourcePoolError):
    """A table or column of this app does not exist yet."""


class SecretUnreadable(ResourcePoolError, ValueError):
    """A secret could not be encrypted or decrypted with the keys in the settings.

    It is a ``ValueError``, because Django's admin shows a dash for a value that raises one, and fails on other errors.

    Attributes:
        row: model and primary key of the unreadable row; None: this process has read no other secret of that column,
            so its keys may be wrong.
    """

    row: tuple[type, Any] | None = None


class ImportRefused(ResourcePoolError):
    """A file was not imported because of errors in it; the database is unchanged."""


class CheckerBroken(ResourcePoolError):
    """Too many health checks failed at once: probably the checker or its target is broken, not the resources."""


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 (a number with thousands of digits, or a caller's broken __repr__)
        return f"({type(value).__name__})"
    return text if len(text) <= 80 else text[:77] + "..."

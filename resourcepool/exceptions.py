"""Everything this package raises. One tree, so that one ``except ResourcePoolError`` catches it all."""

from typing import Any

from resourcepool.events import sentence_for


class ResourcePoolError(Exception):
    """The root of every error raised by resourcepool."""


class Hidden:
    """Stands for a value that no error may show, because it may be a secret."""

    def __repr__(self) -> str:
        return "(not shown)"


class BadOption(ResourcePoolError, ValueError):
    """A value that is not allowed; says which one, what was given, unless that is ``Hidden``, and why.

    Args:
        allowed: what it must be: "a JSON object".
        because: or, in place of that, why it is refused: "orders has it already".
    """

    def __init__(self, name: str, value: object, allowed: str = "", because: str = "") -> None:
        self.name, self.value, self.allowed, self.because = name, value, allowed, because
        if isinstance(value, Hidden):
            super().__init__(sentence_for("about", name=name, why=self.why))
        else:
            super().__init__(sentence_for("not_allowed", name=name, value=_shown(value), why=self.why))

    @property
    def why(self) -> str:
        """The end of its sentence."""
        return self.because or sentence_for("must_be", allowed=self.allowed)

    def of(self, name: str) -> "BadOption":
        """Return the same about an option of another name."""
        return type(self)(name, self.value, self.allowed, self.because)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            self.name,
            self.value,
            self.allowed,
            self.because,
        )  # to other processes, as it was made


class AcquireTimeout(ResourcePoolError, TimeoutError):
    """Nothing suitable came free within the caller's timeout."""


class LeaseLost(ResourcePoolError):
    """What was held is held no longer: expired, taken away, or not confirmed in time."""

    def again(self) -> "LeaseLost":
        """Return the same, to be raised: an error that is raised again and again keeps the frames of each time."""
        return type(self)(*self.args)


class LeaseReleased(LeaseLost):
    """The handle was used after its holder had given the lease back."""


class NotHeld(ResourcePoolError, RuntimeError):
    """Something was to be released by a thread, task or process that does not hold it, or not so much of it."""


class UpgradeConflict(ResourcePoolError, RuntimeError):
    """A reader asked to write in a way in which it would wait for itself, or for another that waits for it."""


class LeaseFromAnotherProcess(ResourcePoolError):
    """A handle was used in a forked child; the lease still belongs to the parent."""


class QueueBusy(ResourcePoolError):
    """Work on a queue was to begin that another thread works on, or that nobody is to begin work on now."""


class ClaimInTransaction(ResourcePoolError):
    """A claim inside an open transaction would be invisible until commit and undone by a rollback."""


class ChannelFull(ResourcePoolError):
    """A durable subscription has not read so many messages that no more are to be published."""


class MessagesMissed(ResourcePoolError):
    """Messages of a channel were removed before a subscriber read them; reading goes on after them.

    Attributes:
        channel, subscription: the names; the second is "" for a subscriber without one.
        first, last: the numbers of the first and the last message that it missed.
    """

    def __init__(self, channel: str, subscription: str, first: int, last: int) -> None:
        who = f"subscription {subscription!r}" if subscription else "a subscriber without a name"
        super().__init__(
            f"channel {channel!r}: messages {first} to {last} ({last - first + 1}) were removed before {who} read them"
        )
        self.channel, self.subscription, self.first, self.last = channel, subscription, first, last

    @property
    def count(self) -> int:
        """How many it missed."""
        return self.last - self.first + 1

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.channel, self.subscription, self.first, self.last)


class GuardOutsideTransaction(ResourcePoolError):
    """``guard`` protects a transaction, and there is none."""


class DatabaseUnavailable(ResourcePoolError):
    """The database could not be reached or stayed busy, through all retries, or refuses; the message says why.

    Attributes:
        is_login: it refuses the user, the password or the name of the database.
    """

    is_login = False


class RowLocked(DatabaseUnavailable):
    """Rows that were to be changed are locked by somebody's transaction, and were left as they are.

    Attributes:
        done: of how many others the change was made; those that one asks for one by one are changed or not together.
    """

    def __init__(self, message: str, done: int = 0) -> None:
        super().__init__(message)
        self.done = done

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.done)


class NotMigrated(ResourcePoolError):
    """A table of this app, or a column of one, does not exist yet."""


class SecretUnreadable(ResourcePoolError, ValueError):
    """A secret could not be encrypted or decrypted with the keys in the settings.

    A ``ValueError``, for Django's pages show a dash in the place of a value that raises one, and fail for others.

    Attributes:
        row: the model and the primary key of the row at fault; None: this process has read no other secret of that
            column, so its keys may be at fault.
    """

    row: tuple[type, Any] | None = None


class ImportRefused(ResourcePoolError):
    """A file was not imported, because of the file or of lines in it; the database is as it was before."""


class CheckerBroken(ResourcePoolError):
    """So many checks failed together that the checker or its target must be at fault, not the resources."""


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 (thousands of digits, or something of the caller's that cannot be shown)
        return f"({type(value).__name__})"
    return text if len(text) <= 80 else text[:77] + "..."

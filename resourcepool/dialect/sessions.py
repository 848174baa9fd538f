"""Sessions on the server, as far as others need to know them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Session:
    """One that has a row locked.

    Attributes:
        number: by which the server knows it.
        client: where it comes from, "host:port"; "": from the server's own.
        idle: for how many seconds it has asked nothing; None: a statement of it runs, or that is not known.
        command: the statement that ends it.
    """

    number: int
    client: str
    idle: float | None
    command: str

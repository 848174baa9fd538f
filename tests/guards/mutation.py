"""What a guard that can be taken out is."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """One guard, where it stands, what is left without it, and who should miss it.

    ``database``: the server on which they miss it, see ``tests.servers``; "": SQLite.
    """

    name: str
    file: str
    guard: str
    without: str
    tests: tuple[str, ...] = ("tests/leases",)
    database: str = ""

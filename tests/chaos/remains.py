"""The remaining rows and sessions after all workers have left, for the checker."""

from dataclasses import dataclass, field


@dataclass
class Remains:
    """What was found in the database.

    Attributes:
        steps: (page, before, fence, mark) of each write, in the order in which they were made.
        pages: the fence that each page was left with.
        connected, connected_after: sessions on the server just before the workers left, and afterwards.
        taken: rows that were not free a ttl later; waiting: tickets that were still alive.
    """

    steps: list[tuple[int, int, int, str]] = field(default_factory=list)
    pages: dict[int, int] = field(default_factory=dict)
    connected: int = 0
    connected_after: int = 0
    taken: list[int] = field(default_factory=list)
    waiting: int = 0

"""Cuts rows into statements that every server takes."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

LENGTH = 250_000  # characters of up to 4 bytes: a server may take only 1 MB (max_allowed_packet) in a statement

Row = TypeVar("Row")


def batches(rows: Iterable[Row], length: Callable[[Row], int], most: int) -> Iterator[list[Row]]:
    """Yield the rows in batches of at most ``most``, and of ``LENGTH`` characters unless it is a single row.

    Args:
        length: returns how many characters a row has.
    """
    batch: list[Row] = []
    total = 0
    for row in rows:
        size = length(row)
        if batch and (len(batch) == most or total + size > LENGTH):
            yield batch
            batch, total = [], 0
        batch.append(row)
        total += size
    if batch:
        yield batch

"""Splits rows into batches, each of which fits into one statement."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

LENGTH = 250_000  # characters of up to 4 bytes: some database servers allow only 1 MB (max_allowed_packet)

Row = TypeVar("Row")


def batched(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """Yield batches of at most ``most`` rows."""
    left = iter(rows)
    while batch := list(islice(left, most)):
        yield batch


def batches(rows: Iterable[Row], length: Callable[[Row], int], most: int) -> Iterator[list[Row]]:
    """Yield batches of at most ``most`` rows and ``LENGTH`` characters; a longer row is a batch of its own.

    Args:
        length: returns the number of characters of a row.
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

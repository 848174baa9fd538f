"""The dispenser of document 003 in memory, to be stepped: it stops wherever its process sends Redis another command."""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

Steps = Generator[str, None, list[str]]


class Document:
    """A pool and buckets, each command atomic, as they are in Redis."""

    def __init__(self, pool: Mapping[str, float]) -> None:
        self.pool = dict(pool)
        self.buckets: dict[str, list[str]] = {}

    def recreate(self, mapping: Mapping[str, float]) -> Iterator[str]:
        assigned = {key for keys in self.buckets.values() for key in keys}
        yield "buckets read"
        self.pool.clear()
        yield "pool cleared"
        self.pool.update({key: score for key, score in mapping.items() if key not in assigned})

    def assign(self, limit: int, worker: str) -> Steps:
        held = list(self.buckets.get(worker, []))
        yield "bucket read"
        if len(held) < limit:
            new = sorted(self.pool, key=lambda key: self.pool[key])[: limit - len(held)]
            for key in new:
                del self.pool[key]
            yield "taken out of the pool"
            self.buckets.setdefault(worker, []).extend(new)
            return held + new
        del self.buckets[worker][limit:]
        return self.buckets[worker]

    def done(self, worker: str) -> bool:
        return self.buckets.pop(worker, None) is not None

    def expire(self, worker: str) -> None:
        self.buckets.pop(worker, None)

    def everywhere(self) -> list[str]:
        """Return the tasks in the pool or in a bucket."""
        return sorted([*self.pool, *(key for keys in self.buckets.values() for key in keys)])


def finish(steps: Any) -> Any:
    """Run these steps to their end; return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value

"""All systems: what surfaces loop over."""

from collections.abc import Sequence

from resourcepool.status import elections
from resourcepool.status.internals import DATABASES, JOBS
from resourcepool.status.locks import channels, summary as locks
from resourcepool.status.queues import system as queues
from resourcepool.status.system import NamedSystem, System
from resourcepool.status.work import dispensers, streams, timers

_named = (streams, dispensers, timers, channels, elections)
_systems: list[System] = [*(one.SYSTEM for one in _named), queues.SYSTEM, JOBS, locks.SYSTEM, DATABASES]


def systems() -> Sequence[System]:
    """Return the systems, in the order in which they are listed."""
    return _systems


def register(system: System) -> System:
    """Add a system of another app, which declares it in the module of its models; return it."""
    _systems.append(system)
    return system


def named_systems() -> dict[str, NamedSystem]:
    """Return {word: system} of the systems with rows that are known by name: "stream", "topic" .."""
    return {system.word: system for system in _systems if isinstance(system, NamedSystem)}

"""All systems: what surfaces loop over."""

from collections.abc import Sequence

from resourcepool.status.system import NamedSystem, System
from resourcepool.status.systems import (
    channels,
    databases,
    dispensers,
    elections,
    jobs,
    locks,
    queues,
    streams,
    topics,
)

_ours = (streams, dispensers, topics, channels, elections, queues, jobs, locks, databases)
_systems: list[System] = [module.SYSTEM for module in _ours]


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

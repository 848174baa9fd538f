"""The sweep: everything that should be looked at every minute or so, one thing after the other."""

from resourcepool.elections.models import election_models
from resourcepool.elections.term import Term
from resourcepool.events import joined, say
from resourcepool.exceptions import ResourcePoolError
from resourcepool.jobs import PRUNE, STATISTICS, SWEEP, run
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.registry import resource_models
from resourcepool.sweeps.alarming import tell_alarms
from resourcepool.sweeps.expired import clear_expired, tell_overtaken
from resourcepool.sweeps.pruning import prune_channels, prune_finished, prune_history
from resourcepool.sweeps.samples import take_samples
from resourcepool.sweeps.unused_names import remove_unused_names

ONE = {"leases_ran_out": "lease_ran_out", "alarms": "alarm", "samples": "sample"}


def sweep() -> str | None:
    """Return to service what is due, clear and tell what ran out, in every pool.

    Returns:
        What was done, in one line; None when it is being done elsewhere.
    """
    return run(SWEEP, _sweep)


def prune() -> str | None:
    """Remove what is old: history, tasks, timers, names of locks, messages; see ``sweep`` for what it returns."""
    return run(PRUNE, lambda term: say("removed", count=_prune(term)))


def refresh_statistics() -> str | None:
    """Write down how the pools stand; see ``sweep`` for what it returns."""
    return run(STATISTICS, lambda term: _counted(take_samples(), "samples"))


def _prune(term: Term) -> int:
    return sum(kind(term) for kind in (prune_history, prune_finished, prune_channels, remove_unused_names))


def _counted(count: int, code: str) -> str:
    return say(ONE.get(code, code) if count == 1 else code, count=count)


def _sweep(term: Term) -> str:
    counts: dict[str, int] = {"returned": 0, "leases_ran_out": 0, "overtaken": 0}
    broken: list[str] = []
    for model in [*resource_models(), *election_models()]:
        term.ensure_held()
        try:
            if issubclass(model, AbstractResource):
                counts["returned"] += ResourceQuerySet(model=model, using=model.pool.using).return_due()
            counts["leases_ran_out"] += clear_expired(model)
            counts["overtaken"] += tell_overtaken(model)
        except ResourcePoolError as error:  # one pool in trouble must not keep the others from being swept
            broken.append(say("about", name=model._meta.label, why=str(error)))
    counts["alarms"] = tell_alarms(term)
    return joined([joined([_counted(count, code) for code, count in counts.items()], "and"), *broken])

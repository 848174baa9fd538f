"""The sweep: everything that should be looked at every minute or so, one thing after the other."""

from resourcepool.elections.election import Term
from resourcepool.exceptions import ResourcePoolError
from resourcepool.jobs import PRUNE, STATISTICS, SWEEP, run
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.registry import resource_models
from resourcepool.sweeps.alarming import tell_alarms
from resourcepool.sweeps.expired import clear_expired, tell_overtaken
from resourcepool.sweeps.pruning import prune_history
from resourcepool.sweeps.samples import take_samples

ONE = {"leases ran out": "lease ran out", "alarms": "alarm", "samples": "sample"}


def sweep() -> str | None:
    """Return to service what is due, clear and tell what ran out, in every pool.

    Returns:
        What was done, in one line; None when it is being done elsewhere.
    """
    return run(SWEEP, _sweep)


def prune() -> str | None:
    """Remove what is old from the history; see ``sweep`` for what it returns."""
    return run(PRUNE, lambda term: f"{prune_history(term)} removed")


def refresh_statistics() -> str | None:
    """Write down how the pools stand; see ``sweep`` for what it returns."""
    return run(STATISTICS, lambda term: _counted(take_samples(), "samples"))


def _counted(count: int, what: str) -> str:
    return f"{count} {ONE.get(what, what) if count == 1 else what}"


def _sweep(term: Term) -> str:
    counts: dict[str, int] = {"returned to service": 0, "leases ran out": 0, "of these overtaken": 0}
    broken: list[str] = []
    for model in resource_models():
        term.ensure_held()
        try:
            counts["returned to service"] += ResourceQuerySet(model=model, using=model.pool.using).return_due()
            counts["leases ran out"] += clear_expired(model)
            counts["of these overtaken"] += tell_overtaken(model)
        except ResourcePoolError as error:  # one pool in trouble must not keep the others from being swept
            broken.append(f"{model._meta.label}: {error}")
    counts["alarms"] = tell_alarms(term)
    return "; ".join([", ".join(_counted(count, what) for what, count in counts.items()), *broken])

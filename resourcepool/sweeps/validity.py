"""The validity check of a whole pool, as a job: safe to start twice at once, and its result is written down."""

from collections.abc import Callable
from typing import Any

from resourcepool.elections.term import Term
from resourcepool.events import joined, say
from resourcepool.jobs import CHECK, run
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.registry import resource_model
from resourcepool.validity.check import Wishes, check
from resourcepool.validity.outcome import Checked, Tally
from resourcepool.validity.rules import rules_of


def check_pool(model: Any, wishes: Wishes, tell: Callable[[Checked], object] = lambda _: None) -> str | None:
    """Check every resource of ``model`` that nobody holds; see ``checking.check`` for the arguments.

    Returns:
        What came of it, in one line; None when it is being done elsewhere.

    Raises:
        CheckerBroken: too many failed together; the job has failed, and an alarm says so.
        BadOption: the settings do not say how to check them, or are wrong; no job has begun.
    """
    rules_of(model)

    def work(term: Term) -> str:
        tally = Tally(tell)
        check(model, wishes=wishes, tell=tally, go_on=term.ensure_held)
        in_use = ResourceQuerySet(model=model, using=model.pool.using).held().filter(in_service=True).count()
        return joined([str(tally), say("used", count=in_use)]) if in_use else str(tally)

    return run(f"{CHECK}{model._meta.label}", work)


def check_validity(label: str) -> str | None:
    """Check the resources of this pool that were not checked lately: what Celery beat starts now and then."""
    model = resource_model(label)
    return check_pool(model, Wishes(unless_within=rules_of(model).every / 2))

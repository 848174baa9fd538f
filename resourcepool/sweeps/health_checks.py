"""The health check of a whole pool as a job: one run at a time, with a recorded result."""

from collections.abc import Callable
from typing import Any

from resourcepool.elections.term import Term
from resourcepool.events import joined, sentence_for
from resourcepool.health_checks.check import CheckOptions, check
from resourcepool.health_checks.check_settings import check_settings_of
from resourcepool.health_checks.results import CheckResult, Tally
from resourcepool.jobs import CHECK, run
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.registry import resource_model


def check_pool(
    model: Any, options: CheckOptions, on_result: Callable[[CheckResult], object] = lambda _: None
) -> str | None:
    """Check every free resource of ``model``; see ``check`` for the arguments.

    Returns:
        The result in one line; None if another process is running it.

    Raises:
        CheckerBroken: too many checks failed together; the job failed, and an alarm reports it.
        BadOption: the settings of the check are missing or invalid; no job was started.
    """
    check_settings_of(model)

    def work(term: Term) -> str:
        tally = Tally(on_result)
        check(model, options=options, on_result=tally, checkpoint=term.ensure_held)
        in_use = ResourceQuerySet(model=model, using=model.pool.using).held().filter(in_service=True).count()
        return joined([str(tally), sentence_for("used", count=in_use)]) if in_use else str(tally)

    return run(f"{CHECK}{model._meta.label}", work)


def check_health(label: str) -> str | None:
    """Check the resources of this pool that were not checked recently; started by Celery beat."""
    model = resource_model(label)
    return check_pool(model, CheckOptions(skip_checked_within=check_settings_of(model).every / 2))

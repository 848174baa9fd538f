"""Checks that a page starts: they run in a thread, so that the page answers in time even if a checker hangs."""

from collections.abc import Collection
from concurrent.futures import Future, wait
from typing import Any

from django.utils.translation import gettext as _

from resourcepool.database import background
from resourcepool.database.clock import monotonic
from resourcepool.exceptions import ResourcePoolError
from resourcepool.health_checks.check import CheckOptions, check
from resourcepool.health_checks.results import Tally

MAX_CHECKS = 20
TIME_LIMIT = 25.0  # seconds in which checks begin; web servers give up on a page after 30
GRACE = 2.0  # seconds for giving back what was not checked


class Unfinished(ResourcePoolError):
    """Time ran out after ``done`` checks."""

    def __init__(self, done: int = 0) -> None:
        super().__init__(
            _(
                "Not everything was checked within %d s; try fewer. What is still being looked at is given back as it"
                " was when its check ends."
            )
            % TIME_LIMIT
        )
        self.done = done


def check_now(model: Any, pks: Collection[Any], actor: str) -> int:
    """Check these and return how many were checked, after WITHIN + GRACE seconds at most.

    A quarantine that no check decided is not ended.

    Args:
        actor: the operator, for the history.

    Raises:
        Unfinished: it took longer.
        CheckerBroken, BadOption: as ``check`` does.
    """
    tally, ended, until = Tally(), Future[None](), monotonic() + TIME_LIMIT

    def checkpoint() -> None:
        if monotonic() > until:
            raise Unfinished

    def work() -> None:
        try:
            check(model, pks, options=CheckOptions(actor=actor), on_result=tally, checkpoint=checkpoint)
        except Exception as error:  # noqa: BLE001 (raised where it is waited for)
            ended.set_exception(error)
        else:
            ended.set_result(None)

    background.start("check", work)
    wait([ended], timeout=TIME_LIMIT + GRACE)
    done = sum(tally.verdicts.values())
    if not ended.done() or isinstance(ended.exception(), Unfinished):
        raise Unfinished(done)
    ended.result()
    return done

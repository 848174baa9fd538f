"""Health checks started by a page: they run in a thread, so that the page answers in time even if a checker hangs."""

from collections.abc import Collection
from concurrent.futures import Future, wait
from typing import Any

from resourcepool.clock import monotonic
from resourcepool.db import background
from resourcepool.exceptions import ResourcePoolError
from resourcepool.health_checks.check import CheckOptions, Tally, check
from resourcepool.translation import gettext as _

MAX_CHECKS = 20
TIME_LIMIT = 25.0  # seconds; no check starts later, because web servers time out after 30
GRACE = 2.0  # seconds to release resources that were not checked


class Unfinished(ResourcePoolError):
    """The time was up after ``done`` checks."""

    def __init__(self, done: int = 0) -> None:
        super().__init__(
            _(
                "Not all checks finished within %d s; select fewer. Resources that are still being checked"
                " are released unchanged when their check ends."
            )
            % TIME_LIMIT
        )
        self.done = done


def check_now(model: Any, pks: Collection[Any], actor: str) -> int:
    """Check these resources; return the number of checked ones after TIME_LIMIT + GRACE seconds at most.

    Quarantines that were not set by a check are not ended.

    Args:
        actor: the operator, for the history.

    Raises:
        Unfinished: the checks took longer.
        CheckerBroken, BadOption: as ``check`` does.
    """
    tally, ended, until = Tally(), Future[None](), monotonic() + TIME_LIMIT

    def checkpoint() -> None:
        if monotonic() > until:
            raise Unfinished

    def work() -> None:
        try:
            check(model, pks, options=CheckOptions(actor=actor), on_result=tally, checkpoint=checkpoint)
        except Exception as error:  # noqa: BLE001 (raised again by ended.result())
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

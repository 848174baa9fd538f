"""The base class of checkers, their threads, and the settings of checks: RESOURCEPOOL["CHECKS"]["app.Model"]."""

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from django.utils.module_loading import import_string
from django.views.decorators.debug import sensitive_variables

from resourcepool import options
from resourcepool.clock import monotonic
from resourcepool.conf import setting
from resourcepool.db import background
from resourcepool.db.threads import POLL
from resourcepool.documentation import documented
from resourcepool.events import Sentence, sentence_for
from resourcepool.exceptions import BadOption, Hidden, LeaseLost
from resourcepool.resources.state import Verdict
from resourcepool.text import printable
from resourcepool.translation import gettext_noop as _

GENERAL = frozenset({"checker", "timeout", "every", "at_once", "suspicious"})
WEEK = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        verdict: ok; bad: the resource is at fault; unknown: the fault may be elsewhere.
        seconds: the response time; None: unknown.
        why: the reason, one line for people; without secrets.
    """

    verdict: Verdict
    seconds: float | None = None
    why: str = ""


class Checker:
    """Checks whether resources are usable. One object checks all resources of a run, several in parallel threads.

    Example::

        class PhoneChecker(Checker):
            def __init__(self, *, number: str, **general):    # from RESOURCEPOOL["CHECKS"]["app.Phone"]
                super().__init__(**general)
                self.number = number

            def check(self, phone):
                if dial(phone, self.number, timeout=self.timeout):
                    return Finding(Verdict.OK)
                return Finding(Verdict.BAD, why="no dial tone")

    An exception from ``check`` counts as unknown. Not promised: that a check which exceeds ``timeout`` is stopped; the
    resource is released soon after the timeout, although the check goes on.
    """

    def __init__(self, *, timeout: float = 10.0) -> None:
        """Take the settings; raises BadOption for a wrong one. No I/O, because ``manage.py check`` calls it.

        Args:
            timeout: the maximum duration of one check, in seconds.
        """
        self.timeout = timeout

    def prepare(self) -> None:
        """Prepare a run; raises CheckerBroken if no resource can be checked."""

    def check(self, resource: Any) -> Finding:
        """Return whether this resource is usable. It is leased during the check."""
        raise NotImplementedError(f"{type(self).__name__} must define check()")


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """The settings of the health checks of one model.

    Attributes:
        every: the interval of checks of each resource, in seconds.
        at_once: the number of parallel checks.
        suspicious: the minimum number of failures to blame the checker, see ``check.common_cause``.
    """

    checker: Checker
    every: int
    at_once: int
    suspicious: int


def no_checker() -> Sentence:
    """Return why nothing can be checked."""
    return Sentence(_("no checker is configured; see %(page)s"), page=documented("how-to/health-checks"))


@sensitive_variables()  # the URL of a checker may contain a key
def check_settings_of(model: Any) -> CheckSettings:
    """Return the settings of the health checks of ``model``.

    Raises:
        BadOption: the settings are missing, or one is wrong.
    """
    where = f"RESOURCEPOOL['CHECKS'][{model._meta.label!r}]"
    configured = setting("CHECKS").get(model._meta.label)
    if configured is None:
        raise BadOption(where, Hidden(), because=no_checker())
    every = _every(where, configured)  # at first, because it requires a dict
    return CheckSettings(
        checker=_checker(model, where, configured),
        every=every,
        at_once=options.whole(f"{where}['at_once']", configured.get("at_once", 20), least=1, most=200),
        suspicious=options.whole(f"{where}['suspicious']", configured.get("suspicious", 5), least=1, most=100),
    )


def check_intervals() -> dict[str, int]:
    """Return {label of a model with checks: the interval in seconds}; raises BadOption."""
    return {
        label: _every(f"RESOURCEPOOL['CHECKS'][{label!r}]", setting("CHECKS")[label])
        for label in setting("CHECKS")
    }


@sensitive_variables()
def _every(where: str, configured: Any) -> int:
    if not isinstance(configured, Mapping):
        raise BadOption(where, Hidden(), Sentence(_("a dict")))
    return options.whole(f"{where}['every']", configured.get("every", 600), least=10, most=WEEK)


def _checker(model: Any, where: str, configured: Mapping[str, Any]) -> Checker:
    path = configured.get("checker", model.default_checker)
    timeout = options.seconds(f"{where}['timeout']", configured.get("timeout", 10.0), least=0.1, most=300)
    own = {name: value for name, value in configured.items() if name not in GENERAL}
    try:
        checker = import_string(path)
    except (ImportError, AttributeError, TypeError):
        checker = None
    if not (isinstance(checker, type) and issubclass(checker, Checker)):
        raise BadOption(f"{where}['checker']", path, "the dotted path of a class derived from Checker")
    try:
        return checker(timeout=timeout, **own)
    except BadOption as error:
        raise error.of(f"{where}[{error.name!r}]") from error
    except TypeError as error:  # such as "got an unexpected keyword argument 'ulr'"
        raise BadOption(where, sorted(own, key=str), because=str(error)) from error


GRACE = 2.0  # seconds to wait for a check after its timeout
MAX_TEXT = 150

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningCheck:
    """A check that has started; ``lease``: the ``CheckLease`` of its resource."""

    lease: Any
    finding: Future[Finding] = field(default_factory=Future)
    began_at: float = field(default_factory=monotonic)


class CheckerPool:
    """Checks resources, each in its own thread, whose connections are closed."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.running: list[RunningCheck] = []

    def begin(self, lease: Any) -> None:
        """Start to check the leased resource; raises LeaseLost if its row was deleted."""
        check = RunningCheck(lease)
        self.running.append(check)  # at first, so that an interruption releases it
        try:
            resource = lease.resource
        except LeaseLost:
            self.running.remove(check)
            raise
        background.start("check", lambda: check.finding.set_result(_run(self._checker, resource)))

    def finished(self) -> Iterator[tuple[Any, Finding]]:
        """Wait briefly, and yield the checks that have ended."""
        wait([check.finding for check in self.running], timeout=POLL, return_when=FIRST_COMPLETED)
        for check in tuple(self.running):
            if check.finding.done():
                self.running.remove(check)
                yield check.lease, check.finding.result()
            elif monotonic() > check.began_at + self._checker.timeout + GRACE:
                self.running.remove(check)
                yield check.lease, Finding(Verdict.UNKNOWN, why=sentence_for("checker_stuck"))

    def wait(self) -> None:
        """Wait until all checks have ended or are overdue; their threads cannot be stopped."""
        ends_at = monotonic() + self._checker.timeout + GRACE
        while self.running and monotonic() < ends_at:
            if not wait([check.finding for check in self.running], timeout=POLL).not_done:
                return


def _run(checker: Checker, resource: Any) -> Finding:
    try:
        finding = checker.check(resource)
        seconds = None if finding.seconds is None else options.seconds("seconds", finding.seconds)
        return Finding(Verdict(finding.verdict), seconds, one_line(finding.why))
    except Exception as error:  # noqa: BLE001 (a checker of the project may raise anything; the text may contain secrets)
        logger.warning("%s failed: %s", type(checker).__name__, type(error).__name__)
        return Finding(Verdict.UNKNOWN, why=sentence_for("checker_failed", error=type(error).__name__))


def one_line(text: str) -> str:
    """Return ``text`` as one printable line that fits into a reason; a Sentence already is one."""
    if isinstance(text, Sentence):
        return text
    return " ".join(printable(text, " ").split())[:MAX_TEXT]

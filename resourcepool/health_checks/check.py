"""Leases resources, runs the checker on each, and acts on its finding."""

import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from resourcepool.events import sentence_for
from resourcepool.exceptions import CheckerBroken, LeaseLost
from resourcepool.health_checks.candidates import CHECK_REASON, Candidate, find_candidates, skip_reasons
from resourcepool.health_checks.check_settings import CheckSettings, check_settings_of
from resourcepool.health_checks.checker import Finding
from resourcepool.health_checks.checker_pool import CheckerPool
from resourcepool.health_checks.lease import CheckLease, lease_candidate
from resourcepool.health_checks.results import CheckAction, CheckResult
from resourcepool.resources.state import Verdict

MAX_BATCH = 100  # resources that are judged together, at most; bad ones stay leased until then
TURNS = 5  # a batch is so many times as large as the number of checks at once

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of a check.

    Attributes:
        dry_run: only lease and check the resources, and change nothing.
        every_quarantine: also check resources in quarantines by operators and crawlers, and return good ones to
            service.
        unless_within: skip resources that were checked within the last so many seconds.
        believe: never blame the checker, however many fail.
        actor: the operator, for the history; "": a program.
    """

    dry_run: bool = False
    any_quarantine: bool = False
    skip_checked_within: float = 0.0
    believe: bool = False
    actor: str = ""


def check(
    model: Any,
    pks: Collection[Any] | None = None,
    *,
    options: CheckOptions = CheckOptions(),
    on_result: Callable[[CheckResult], object] = lambda _: None,
    checkpoint: Callable[[], object] = lambda: None,
) -> None:
    """Check resources of ``model``: quarantine bad ones, and end quarantines by checks of good ones.

    Each resource is leased while it is checked. Held and out-of-service resources are skipped; a free one that a waiter
    is entitled to goes to the waiter. No verdict shortens a quarantine by an operator or a crawler.

    Args:
        pks: only these primary keys; None: all.
        tell: called with the outcome of each, as soon as it is known.
        go_on: called now and then; an exception from it ends the checks.

    Raises:
        CheckerBroken: too many failed together. These were not changed, and the others not checked.
        BadOption: the settings of the check are missing or wrong.
    """
    rules = check_settings_of(model)
    rules.checker.prepare()
    found = find_candidates(
        model, pks, any_quarantine=options.any_quarantine, skip_checked_within=options.skip_checked_within
    )
    can_be = {candidate.pk for candidate in found}
    _tell_skipped(model, [pk for pk in dict.fromkeys(pks or ()) if pk not in can_be], on_result)
    size = min(MAX_BATCH, max(TURNS * rules.at_once, 2 * rules.suspicious))
    for start in range(0, len(found), size):
        _Batch(model, rules, options, on_result, checkpoint).check(found[start : start + size])


@dataclass
class _Batch:
    """Resources that are judged together."""

    model: Any
    rules: CheckSettings
    options: CheckOptions
    on_result: Callable[[CheckResult], object]
    checkpoint: Callable[[], object]

    def __post_init__(self) -> None:
        self._pool = CheckerPool(self.rules.checker)
        self._findings: list[tuple[Finding, bool]] = []  # and whether it was bad before
        self._failed: list[tuple[CheckLease, Finding]] = []
        self._skipped: list[Any] = []  # primary keys

    def check(self, candidates: list[Candidate]) -> None:
        """Check these and act on the findings; every lease is given back, also after an error."""
        try:
            self._look_at(deque(candidates))
            _tell_skipped(self.model, self._skipped, self.on_result)
            self._refuse_to_believe()
            while self._failed:
                self._settle(*self._failed.pop())
        finally:
            self._pool.wait()
            _give_back([*(check.lease for check in self._pool.running), *(lease for lease, _ in self._failed)])

    def _look_at(self, candidates: deque[Candidate]) -> None:
        while candidates or self._pool.running:
            self.checkpoint()
            while candidates and len(self._pool.running) < self.rules.at_once:
                self._begin(candidates.popleft())
            for lease, finding in self._pool.finished():
                self._failed.append((lease, finding))  # first, so that it is given back in any case
                self._findings.append((finding, lease.candidate.was_bad))
                if finding.verdict is Verdict.OK:
                    self._settle(*self._failed.pop())

    def _begin(self, candidate: Candidate) -> None:
        lease = lease_candidate(self.model, candidate, self.options.actor)
        if lease is None:
            self._skipped.append(candidate.pk)
            return
        try:
            self._pool.begin(lease)
        except LeaseLost:  # its row was just deleted; the job itself goes on
            self._skipped.append(candidate.pk)

    def _refuse_to_believe(self) -> None:
        why = "" if self.options.believe else common_cause(self._findings, self.rules.suspicious)
        if not why:
            return
        for lease, finding in self._failed:
            self.on_result(_checked(lease, finding, CheckAction.NOTHING))
        raise CheckerBroken(sentence_for("nothing_changed", why=why))

    def _settle(self, lease: CheckLease, finding: Finding) -> None:
        try:
            done = self._act(lease, finding)
        except LeaseLost:
            done = CheckAction.LOST
        except BaseException:
            _give_back([lease])
            raise
        self.on_result(_checked(lease, finding, done))

    def _act(self, lease: CheckLease, finding: Finding) -> CheckAction:
        if self.options.dry_run:
            lease.restore()
            return CheckAction.NOTHING
        if not lease.note(finding):
            _give_back([lease])
            return CheckAction.LOST
        # A quarantine by an operator or a crawler keeps its length and its reason.
        if finding.verdict is Verdict.BAD and not lease.candidate.is_quarantined_by_others:
            lease.quarantine(sentence_for(CHECK_REASON, why=finding.why or sentence_for("bad")))
            return CheckAction.QUARANTINED
        if finding.verdict is Verdict.OK and lease.candidate.is_quarantined and lease.return_to_service():
            lease.release()
            return CheckAction.RETURNED
        lease.restore()
        return CheckAction.NOTHING


def _give_back(leases: list[CheckLease]) -> None:
    """Give these back as they were found, without an event; a lease that cannot be given back runs out."""
    for lease in leases:
        lease.stop_renewing()  # all of them first, so that an interruption keeps none renewed
    for number, lease in enumerate(leases):
        try:
            with contextlib.suppress(LeaseLost):
                lease.restore()
        except Exception:  # stop: each further try may take seconds
            logger.exception("could not give back %d resources; they lapse by themselves", len(leases) - number)
            return


def _checked(lease: CheckLease, finding: Finding, done: CheckAction) -> CheckResult:
    return CheckResult(lease.pk, str(lease.resource), finding.verdict, finding.seconds, finding.why, done)


def _tell_skipped(model: Any, pks: list[Any], on_result: Callable[[CheckResult], object]) -> None:
    """Tell why these were not checked; one query, as most of a large pool may be in use."""
    for pk, why in skip_reasons(model, pks).items() if pks else ():
        on_result(CheckResult(pk, f"{model._meta.verbose_name} {pk}", None, None, why, CheckAction.SKIPPED))


def common_cause(findings: Sequence[tuple[Finding, bool]], suspicious: int) -> str:
    """Return why the checker or its target must be at fault, in words; "" if the resources may be.

    It is at fault if at least ``suspicious`` resources, and more than half, newly fail: one broken target must not
    condemn a whole pool (scrapy-rotating-proxies #5).

    Args:
        findings: each with whether its resource was bad before.
    """
    ok = sum(finding.verdict is Verdict.OK for finding, _ in findings)
    failed = [finding for finding, was_bad in findings if finding.verdict is not Verdict.OK and not was_bad]
    if len(failed) < suspicious or len(failed) <= ok:
        return ""
    (why, times), *_ = Counter(finding.why for finding in failed).most_common(1)
    counts = {"count": len(failed), "count_all": len(failed) + ok, "count_times": times}
    return sentence_for("failed_together", why=why, **counts)

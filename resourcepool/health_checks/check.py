"""Leases resources, runs the checker on each, and quarantines or returns them by its findings."""

import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from resourcepool.db.rows import batched
from resourcepool.events import joined, sentence_for
from resourcepool.exceptions import CheckerBroken, LeaseLost
from resourcepool.health_checks.checker import CheckerPool, CheckSettings, Finding, check_settings_of
from resourcepool.health_checks.lease import (
    CHECK_REASON,
    Candidate,
    CheckLease,
    find_candidates,
    lease_candidate,
    skip_reasons,
)
from resourcepool.resources.state import Verdict
from resourcepool.translation import gettext_noop as _

MAX_BATCH = 100  # resources that are judged together; bad ones stay leased until then
BATCH_FACTOR = 5  # the size of a batch, in multiples of the number of parallel checks

logger = logging.getLogger(__name__)


class CheckAction(StrEnum):
    """The action taken on a resource after its check."""

    NOTHING = "nothing"
    QUARANTINED = _("quarantined")
    RETURNED = _("returned")  # to service
    SKIPPED = "skipped"  # held, or out of service
    LOST = _("lost")  # an operator revoked the lease of the check


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result for one resource; ``verdict`` is None if it was not checked."""

    pk: Any
    name: str
    verdict: Verdict | None
    seconds: float | None
    why: str
    done: CheckAction


class Tally:
    """Counts results and passes them on."""

    def __init__(self, on_result: Callable[[CheckResult], object] = lambda _: None) -> None:
        self.verdicts: Counter[Verdict] = Counter()
        self.done: Counter[CheckAction] = Counter()
        self.skipped: Counter[str] = Counter()  # by reason
        self._on_result = on_result

    def __call__(self, result: CheckResult) -> None:
        """Count a result."""
        self.done[result.done] += 1
        if result.done is CheckAction.SKIPPED:
            self.skipped[result.why] += 1
        if result.verdict is not None:
            self.verdicts[result.verdict] += 1
        self._on_result(result)

    def __str__(self) -> str:
        """Return "38 ok, 2 bad, 1 unknown; 2 quarantined, 1 returned to service, 4 skipped: in use"."""
        verdicts = sentence_for(
            "verdicts", **{f"count_{verdict.value}": self.verdicts[verdict] for verdict in Verdict}
        )
        codes = {
            CheckAction.QUARANTINED: "quarantined",
            CheckAction.RETURNED: "returned",
            CheckAction.LOST: "taken_meanwhile",
        }
        done = joined(
            [
                sentence_for(code, count=self.done[action])
                for action, code in codes.items()
                if self.done[action]
            ],
            "and",
        )
        skipped = sorted(self.skipped.items(), key=lambda pair: (-pair[1], pair[0]))
        skipped_texts = [sentence_for("skipped", count=number, why=why) for why, number in skipped]
        return joined([verdicts, *filter(None, [done]), *skipped_texts])


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of a check.

    Attributes:
        dry_run: check the resources, but change nothing.
        any_quarantine: also check resources quarantined by operators and crawlers, and return good ones to service.
        skip_checked_within: skip resources that were checked within this many seconds.
        believe: never blame the checker, however many resources fail.
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
    """Check resources of ``model``: quarantine bad ones, and return good ones that a check had quarantined.

    Each resource is leased during its check. Held and out-of-service resources are skipped; a free one that is due to a
    waiter goes to the waiter. No verdict shortens a quarantine by an operator or a crawler.

    Args:
        pks: only these primary keys; None: all.
        on_result: called with each result as soon as it is known.
        checkpoint: called regularly; an exception from it ends the checks.

    Raises:
        CheckerBroken: too many resources failed together. These were not changed, and the others not checked.
        BadOption: the settings of the check are missing or wrong.
    """
    check_settings = check_settings_of(model)
    check_settings.checker.prepare()
    candidates = find_candidates(
        model, pks, any_quarantine=options.any_quarantine, skip_checked_within=options.skip_checked_within
    )
    candidate_pks = {candidate.pk for candidate in candidates}
    _report_skipped(model, [pk for pk in dict.fromkeys(pks or ()) if pk not in candidate_pks], on_result)
    size = min(MAX_BATCH, max(BATCH_FACTOR * check_settings.at_once, 2 * check_settings.suspicious))
    for batch in batched(candidates, size):
        _Batch(model, check_settings, options, on_result, checkpoint).check(batch)


@dataclass
class _Batch:
    """Resources that are judged together."""

    model: Any
    settings: CheckSettings
    options: CheckOptions
    on_result: Callable[[CheckResult], object]
    checkpoint: Callable[[], object]

    def __post_init__(self) -> None:
        self._pool = CheckerPool(self.settings.checker)
        self._findings: list[tuple[Finding, bool]] = []  # with whether it was bad before
        self._failed: list[tuple[CheckLease, Finding]] = []
        self._skipped: list[Any] = []  # primary keys

    def check(self, candidates: list[Candidate]) -> None:
        """Check these and act on the findings; every lease is released, also after an error."""
        try:
            self._run_checks(deque(candidates))
            _report_skipped(self.model, self._skipped, self.on_result)
            self._raise_on_common_cause()
            while self._failed:
                self._finish(*self._failed.pop())
        finally:
            self._pool.wait()
            _restore_all(
                [*(check.lease for check in self._pool.running), *(lease for lease, _ in self._failed)]
            )

    def _run_checks(self, candidates: deque[Candidate]) -> None:
        while candidates or self._pool.running:
            self.checkpoint()
            while candidates and len(self._pool.running) < self.settings.at_once:
                self._begin(candidates.popleft())
            for lease, finding in self._pool.finished():
                self._failed.append((lease, finding))  # at first, so that it is released in any case
                self._findings.append((finding, lease.candidate.was_bad))
                if finding.verdict is Verdict.OK:
                    self._finish(*self._failed.pop())

    def _begin(self, candidate: Candidate) -> None:
        lease = lease_candidate(self.model, candidate, self.options.actor)
        if lease is None:
            self._skipped.append(candidate.pk)
            return
        try:
            self._pool.begin(lease)
        except LeaseLost:  # its row was just deleted: go on with the others
            self._skipped.append(candidate.pk)

    def _raise_on_common_cause(self) -> None:
        why = "" if self.options.believe else common_cause(self._findings, self.settings.suspicious)
        if not why:
            return
        for lease, finding in self._failed:
            self.on_result(_result(lease, finding, CheckAction.NOTHING))
        raise CheckerBroken(sentence_for("nothing_changed", why=why))

    def _finish(self, lease: CheckLease, finding: Finding) -> None:
        try:
            done = self._act(lease, finding)
        except LeaseLost:
            done = CheckAction.LOST
        except BaseException:
            _restore_all([lease])
            raise
        self.on_result(_result(lease, finding, done))

    def _act(self, lease: CheckLease, finding: Finding) -> CheckAction:
        if self.options.dry_run:
            lease.restore()
            return CheckAction.NOTHING
        if not lease.note(finding):
            _restore_all([lease])
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


def _restore_all(leases: list[CheckLease]) -> None:
    """Restore these without an event. Leases that cannot be restored expire."""
    for lease in leases:
        lease._stop_renewing()  # all at first, so that an interruption leaves none renewed
    for number, lease in enumerate(leases):
        try:
            with contextlib.suppress(LeaseLost):
                lease.restore()
        except Exception:  # no further tries, each of which may take seconds
            logger.exception(
                "could not release %d resources after their check; their leases expire", len(leases) - number
            )
            return


def _result(lease: CheckLease, finding: Finding, done: CheckAction) -> CheckResult:
    return CheckResult(lease.pk, str(lease.resource), finding.verdict, finding.seconds, finding.why, done)


def _report_skipped(model: Any, pks: list[Any], on_result: Callable[[CheckResult], object]) -> None:
    """Report the reasons why these were not checked, with one query: most of a large pool may be in use."""
    for pk, why in skip_reasons(model, pks).items() if pks else ():
        on_result(CheckResult(pk, f"{model._meta.verbose_name} {pk}", None, None, why, CheckAction.SKIPPED))


def common_cause(findings: Sequence[tuple[Finding, bool]], suspicious: int) -> str:
    """Return the reason to blame the checker or its target; "" if the resources may be bad.

    They are blamed if at least ``suspicious`` resources, and more than half, newly fail: a broken target must not
    quarantine a whole pool.

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

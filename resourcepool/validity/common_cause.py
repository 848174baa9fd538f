"""Whose fault is it when many fail together: the resources', or what they are checked with?"""

from collections import Counter
from collections.abc import Sequence

from resourcepool.events import say
from resourcepool.resources.state import Verdict
from resourcepool.validity.checker import Finding


def common_cause(findings: Sequence[tuple[Finding, bool]], suspicious: int) -> str:
    """Return why the checker or its target must be at fault, in words; "" if the resources may well be.

    That is so when at least ``suspicious`` of them, and more than half, have failed that had not failed before: one
    broken target must not condemn a whole pool (scrapy-rotating-proxies #5).

    Args:
        findings: each with whether the check before had found it bad, too, so that this is no news.
    """
    ok = sum(finding.verdict is Verdict.OK for finding, _ in findings)
    failed = [finding for finding, was_bad in findings if finding.verdict is not Verdict.OK and not was_bad]
    if len(failed) < suspicious or len(failed) <= ok:
        return ""
    (why, times), *_ = Counter(finding.why for finding in failed).most_common(1)
    counts = {"count": len(failed), "count_all": len(failed) + ok, "count_times": times}
    return say("failed_together", why=why, **counts)

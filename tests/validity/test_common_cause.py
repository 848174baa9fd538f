"""Whose fault it is when many fail together."""

import pytest

from resourcepool.resources.state import Verdict
from resourcepool.validity.common_cause import Evidence, blame

OK, BAD, UNKNOWN = Verdict.OK, Verdict.BAD, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("ok", "news", "no_news", "is_blamed"),
    [
        (0, [], 0, False),
        (10, [], 0, False),
        (0, [BAD] * 4, 0, False),  # too few to say
        (0, [BAD] * 5, 0, True),
        (4, [BAD] * 5, 0, True),
        (5, [BAD] * 5, 0, False),  # not more than half
        (60, [BAD] * 40, 0, False),
        (40, [BAD] * 60, 0, True),
        (0, [UNKNOWN] * 5, 0, True),  # the target is down
        (0, [BAD, BAD, UNKNOWN, UNKNOWN, UNKNOWN], 0, True),
        (3, [], 20, False),  # long known to be bad
        (3, [BAD] * 3, 20, False),
        (0, [BAD] * 4, 20, False),
        (3, [BAD] * 5, 20, True),
    ],
)
def test_the_checker_is_blamed_when(ok: int, news: list[Verdict], no_news: int, is_blamed: bool) -> None:
    findings = [Evidence(OK, was_bad=False)] * ok + [Evidence(BAD, was_bad=True)] * no_news
    findings += [Evidence(verdict, was_bad=False) for verdict in news]
    assert bool(blame(findings, suspicious=5)) is is_blamed


def test_one_that_has_recovered_speaks_for_the_checker() -> None:
    failed = [Evidence(BAD, was_bad=False)] * 5
    assert blame(failed + [Evidence(OK, was_bad=True)] * 5, suspicious=5) == ""


def test_the_words_name_how_many_and_the_commonest_reason() -> None:
    findings = [Evidence(BAD, False, "refused the connection")] * 4 + [Evidence(UNKNOWN, False, "a 503")] * 2
    assert (
        blame([*findings, Evidence(OK, False)], suspicious=5)
        == "6 of 7 failed together (4 times: refused the connection)"
    )

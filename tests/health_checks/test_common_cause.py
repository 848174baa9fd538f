"""When many fail together, the checker is blamed."""

import pytest

from resourcepool.health_checks.check import common_cause
from resourcepool.health_checks.checker import Finding
from resourcepool.resources.state import Verdict

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
    findings = [(Finding(OK), False)] * ok + [(Finding(BAD), True)] * no_news
    findings += [(Finding(verdict), False) for verdict in news]
    assert bool(common_cause(findings, suspicious=5)) is is_blamed


def test_one_that_has_recovered_speaks_for_the_checker() -> None:
    failed = [(Finding(BAD), False)] * 5
    assert common_cause(failed + [(Finding(OK), True)] * 5, suspicious=5) == ""


def test_the_words_name_how_many_and_the_commonest_reason() -> None:
    findings = [(Finding(BAD, why="refused the connection"), False)] * 4
    findings += [(Finding(UNKNOWN, why="a 503"), False)] * 2
    assert (
        common_cause([*findings, (Finding(OK), False)], suspicious=5)
        == "6 of 7 failed together (4 times: refused the connection)"
    )

"""The witness reports violations, and nothing else."""

import json

import pytest

from examples.demo.witness import Ban, Kill, Report, examine

# One request: (proxy, crawler, fence, start, end); an end of None never comes.
ONE_AFTER_THE_OTHER = [("p1", "ann", 1, 0.0, 0.2), ("p1", "ann", 1, 0.3, 0.5), ("p1", "bob", 3, 0.6, 0.8)]


def log(*requests: tuple, events: tuple[dict, ...] = (), status: int = 200) -> list[str]:
    found = list(events)
    for number, (proxy, crawler, fence, start, end) in enumerate(requests):
        request = {"request": number, "proxy": proxy, "crawler": crawler, "fence": fence}
        found.append({"at": start, "event": "start", **request})
        if end is not None:
            found.append({"at": end, "event": "end", "request": number, "status": status})
    return [json.dumps(event) for event in sorted(found, key=lambda event: event["at"])]


def counts(report: Report) -> tuple[int, int, int]:
    found = report.overlapping_requests, report.overlapping_sessions, report.fences_out_of_order
    return tuple(map(len, found))


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param(ONE_AFTER_THE_OTHER, (0, 0, 0), id="one after the other"),
        pytest.param([("p1", "ann", 1, 0, 1), ("p2", "bob", 1, 0, 1)], (0, 0, 0), id="two proxies at once"),
        pytest.param(
            [("p1", "ann", 1, 0, 1), ("p1", "ann", 1, 0.5, 2)], (0, 0, 0), id="one lease, two threads"
        ),
        pytest.param(
            [("p1", "ann", 1, 0, 1), ("p1", "bob", 3, 1, 2)], (0, 0, 0), id="handed over at that moment"
        ),
        pytest.param([("p1", "ann", 1, 0, 1), ("p1", "bob", 3, 0.9, 2)], (1, 1, 0), id="requests overlap"),
        pytest.param([("p1", "ann", 1, 0, 5), ("p1", "bob", 3, 1, 2)], (1, 1, 0), id="one inside the other"),
        pytest.param(
            [("p1", "ann", 1, 0, 1), ("p1", "ann", 3, 0.5, 2)], (1, 1, 0), id="two leases of one crawler"
        ),
        pytest.param(
            [("p1", "ann", 1, 0, 1), ("p1", "bob", 3, 2, 3), ("p1", "ann", 1, 4, 5)],
            (0, 1, 0),
            id="back with an old lease: no request overlaps, the leases do",
        ),
        pytest.param(
            [("p1", "ann", 1, 0, 9), ("p1", "bob", 3, 1, 2), ("p1", "cat", 5, 3, 4)],
            (2, 2, 0),
            id="a long one under two short ones",
        ),
        pytest.param(
            [("p1", "ann", 1, 0, 9), ("p1", "bob", 3, 1, 8), ("p1", "cat", 5, 2, 7)],
            (2, 2, 0),
            id="three at once",
        ),
        pytest.param(
            [("p1", "ann", 1, 0, 5), ("p1", "ann", 1, 1, 2), ("p1", "bob", 3, 3, 4)],
            (1, 1, 0),
            id="a lease ends with its last answer, not with its last question",
        ),
        pytest.param(
            [("p1", "ann", 1, 0, 1), ("p1", "bob", 3, 1.5, 2), ("p2", "ann", 1, 2, 3)],
            (0, 0, 0),
            id="equal fences on two proxies are two leases",
        ),
        pytest.param([("p1", "ann", 3, 0, 1), ("p1", "bob", 1, 2, 3)], (0, 0, 1), id="fence falls"),
        pytest.param([("p1", "ann", 3, 0, 1), ("p1", "bob", 3, 2, 3)], (0, 0, 1), id="two share a fence"),
        pytest.param(
            [("p1", "ann", 9, 0, 1), ("p2", "bob", 3, 2, 3)], (0, 0, 0), id="fences belong to a proxy"
        ),
        pytest.param(
            [("p1", "ann", 1, 0, None), ("p1", "bob", 3, 5, 6)], (1, 1, 0), id="unended runs to the end"
        ),
        pytest.param(
            [("p1", "ann", None, 0, 1), ("p1", "bob", None, 2, 3)], (0, 0, 0), id="no leases, no overlap"
        ),
        pytest.param(
            [("p1", "ann", None, 0, 2), ("p1", "bob", None, 1, 3)], (1, 1, 0), id="no leases, an overlap"
        ),
    ],
)
def test_overlaps_and_fences(requests, expected):
    report = examine(log(*requests))
    assert counts(report) == expected
    assert bool(report.problems()) is any(expected)


def test_an_overlap_is_told_with_its_proxy_its_owners_and_its_times():
    [clash] = examine(log(("p1", "ann", 1, 0.0, 1.0), ("p1", "bob", 3, 0.9, 2.0))).overlapping_requests
    assert (
        str(clash) == "p1: ann with fence 1 from 0.000 s to 1.000 s; bob with fence 3 from 0.900 s to 2.000 s"
    )


def test_lines_may_come_in_any_order():
    lines = log(("p1", "ann", 1, 0.0, 1.0), ("p1", "bob", 3, 0.9, 2.0), ("p1", "cat", 5, 2.5, 3.0))
    assert examine(lines[::-1]).overlapping_requests == examine(lines).overlapping_requests


def test_who_did_what_is_counted():
    report = examine(log(*ONE_AFTER_THE_OTHER, ("p2", "ann", 7, 1.0, 1.5)))
    assert (report.pages, len(report.requests), len(report.sessions)) == (4, 4, 3)
    assert (report.crawlers, report.proxies, report.seconds) == ({"ann", "bob"}, {"p1", "p2"}, 1.5)


def test_only_answers_with_200_are_pages():
    assert examine(log(*ONE_AFTER_THE_OTHER, status=403)).pages == 0


@pytest.mark.parametrize("lines", [[], log(*ONE_AFTER_THE_OTHER, status=403)], ids=["no lines", "no pages"])
def test_a_log_that_proves_nothing_is_a_problem(lines):
    assert examine(lines).problems() == ["not one page was fetched, so the log proves nothing"]


KILLED = {"at": 1.0, "event": "killed", "crawler": "ann"}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param(
            [("p1", "bob", 1, 0.1, 0.4), ("p1", "ann", 3, 0.9, 1.2), ("p1", "bob", 4, 4.5, 5.0)],
            Kill("ann", "p1", in_flight=True, idle=3.5),
            id="in mid-request",
        ),
        pytest.param(
            [("p1", "ann", 1, 0.5, 0.8), ("p1", "bob", 2, 4.5, 5.0)],
            Kill("ann", "p1", in_flight=False, idle=3.5),
            id="between two requests",
        ),
        pytest.param(
            [("p2", "ann", 1, 0.1, 0.2), ("p1", "ann", 7, 0.5, None), ("p2", "bob", 3, 2.0, 3.0)],
            Kill("ann", "p1", in_flight=True, idle=None),
            id="only the proxy it had last counts, and it never came back",
        ),
        pytest.param(
            [("p1", "bob", 1, 0, 2)], Kill("ann", None, in_flight=False, idle=None), id="had no proxy yet"
        ),
    ],
)
def test_kills(requests, expected):
    report = examine(log(*requests, events=(KILLED,)))
    assert report.kills == [expected]
    assert bool(report.problems()) is (expected.idle is None)


@pytest.mark.parametrize(
    ("others", "later_requests"),
    [
        pytest.param([], 0, id="left alone"),
        pytest.param([("p1", "bob", 0, 0.1, 0.2)], 0, id="somebody else had it before"),
        pytest.param([("p1", "ann", 1, 2.0, 2.1)], 0, id="tried once more by the same lease"),
        pytest.param([("p1", "bob", 3, 2.0, 2.1)], 1, id="handed out to somebody else"),
        pytest.param([("p2", "bob", 3, 2.0, 2.1)], 0, id="another proxy is handed out"),
    ],
)
def test_bans(others, later_requests):
    banned = {"at": 1.0, "event": "banned", "proxy": "p1"}
    report = examine(log(("p1", "ann", 1, 0.9, 1.1), *others, events=(banned,)))
    assert report.bans == [Ban("p1", later_requests)]
    assert len(report.problems()) == min(later_requests, 1)

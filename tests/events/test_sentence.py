"""A sentence of the program is English as a text, and in the reader's language where it is shown."""

import pickle

import pytest
from django.utils import translation

from resourcepool.events import Sentence, joined, say, shown
from resourcepool.exceptions import BadOption, DatabaseUnavailable, Hidden

IN_USE = say("skipped", count=2, why=say("in_use"))
SAID = [
    (
        say("check", why=say("login_refused_407")),
        "check: refused our login (407)",
        "检查：拒绝了我们的登录（407）",
    ),
    (say("found_late", seconds=12), "found 12 s after it ran out", "在到期 12 秒后被发现"),
    (say("max_hold", seconds=90.0), "held for max_hold=90 s", "持有时间达到 max_hold=90 秒"),
    (
        joined([say("verdicts", count_ok=3, count_bad=1, count_unknown=0), IN_USE, say("used", count=4)]),
        "3 ok, 1 bad, 0 unknown; 2 skipped: in use; 4 in use",
        "3 个正常，1 个不可用，0 个未知；2 个跳过：使用中；4 个使用中",
    ),
    (joined([say("alarm", count=1), say("alarms", count=2)], "and"), "1 alarm, 2 alarms", "1 个告警，2 个告警"),
    (say("lacks", server="A #1", labels="zone=eu"), "A #1 lacks zone=eu", "A #1 缺少标签 zone=eu"),
    (Sentence("missing"), "missing", "缺失"),
]
BY_PEOPLE = [
    "",
    "in use",
    "check: refused our login (407)",
    "50 % of it (%s %(why)s {x}) `x`",
    "\x1b[2J<script>",
]


@pytest.mark.parametrize(("sentence", "english", "chinese"), SAID)
def test_what_the_program_says_has_two_languages(sentence: Sentence, english: str, chinese: str) -> None:
    assert (sentence, f"{sentence}!", "%s!" % sentence) == (english, f"{english}!", f"{english}!")  # noqa: UP031
    with translation.override("zh-hans"):
        assert (shown(sentence), f"{sentence}!") == (chinese, f"{english}!")
    with translation.override("en-gb"):
        assert shown(sentence) == english


@pytest.mark.parametrize("text", BY_PEOPLE)
def test_what_people_typed_stays_as_it_is(text: str) -> None:
    with translation.override("zh-hans"):
        assert shown(text) == text
        assert shown(say("about", name="Ann", why=text)) == f"Ann：{text}"


def test_of_nothing_nothing_is_said() -> None:
    assert joined([]) == ""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DatabaseUnavailable(say("database", alias="'a'", error="gone")), "数据库 'a'：gone"),
        (BadOption("ttl", 3, because=say("in_use")), "不允许 ttl=3：使用中"),
        (BadOption("url", Hidden(), because=say("in_use")), "url：使用中"),
        (ValueError("some library's"), "some library's"),
    ],
)
def test_an_error_is_shown_in_the_language_of_its_reader_also_from_another_process(
    error: Exception, expected: str
) -> None:
    there = pickle.loads(pickle.dumps(error))
    assert str(there) == str(error)
    with translation.override("zh-hans"):
        assert shown(error) == shown(there) == expected
        assert f"{error}" == str(error)


def test_another_name_is_put_into_it() -> None:
    said = say("came_back", server="A #-1", taker="B").replaced({"A #-1": "A (new)"})
    assert (said, said.code) == ("A (new) came back as B", "came_back")


def test_a_wrong_parameter_is_found_where_it_is_made() -> None:
    for parameters in ({}, {"second": 1}):
        with pytest.raises(KeyError):
            say("found_late", **parameters)
    with pytest.raises(KeyError):
        say("no_such_code")

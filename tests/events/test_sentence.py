"""A sentence is English as text, and localized when shown."""

import pickle

import pytest
from django.utils import translation

from resourcepool.events import Sentence, joined, localized, sentence_for
from resourcepool.exceptions import BadOption, DatabaseUnavailable, Hidden

IN_USE = sentence_for("skipped", count=2, why=sentence_for("in_use"))
SAID = [
    (
        sentence_for("check", why=sentence_for("login_refused_407")),
        "check: refused our login (407)",
        "检查：拒绝了我们的登录（407）",
    ),
    (sentence_for("found_late", seconds=12), "noticed 12 s after it expired", "在过期 12 秒后被发现"),
    (sentence_for("max_hold", seconds=90.0), "held for max_hold=90 s", "持有时间达到 max_hold=90 秒"),
    (
        joined(
            [
                sentence_for("verdicts", count_ok=3, count_bad=1, count_unknown=0),
                IN_USE,
                sentence_for("used", count=4),
            ]
        ),
        "3 ok, 1 bad, 0 unknown; 2 skipped: in use; 4 in use",
        "3 个正常，1 个不可用，0 个未知；2 个已跳过：使用中；4 个使用中",
    ),
    (
        joined([sentence_for("alarm", count=1), sentence_for("alarms", count=2)], "and"),
        "1 alarm, 2 alarms",
        "1 个告警，2 个告警",
    ),
    (sentence_for("lacks", server="A #1", labels="zone=eu"), "A #1 lacks zone=eu", "A #1 缺少标签 zone=eu"),
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
        assert (localized(sentence), f"{sentence}!") == (chinese, f"{english}!")
    with translation.override("en-gb"):
        assert localized(sentence) == english


@pytest.mark.parametrize("text", BY_PEOPLE)
def test_what_people_typed_stays_as_it_is(text: str) -> None:
    with translation.override("zh-hans"):
        assert localized(text) == text
        assert localized(sentence_for("about", name="Ann", why=text)) == f"Ann：{text}"


def test_of_nothing_nothing_is_said() -> None:
    assert joined([]) == ""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DatabaseUnavailable(sentence_for("database", alias="'a'", error="gone")), "数据库 'a'：gone"),
        (BadOption("ttl", 3, because=sentence_for("in_use")), "不允许 ttl=3：使用中"),
        (BadOption("url", Hidden(), because=sentence_for("in_use")), "url：使用中"),
        (ValueError("some library's"), "some library's"),
    ],
)
def test_an_error_is_shown_in_the_language_of_its_reader_also_from_another_process(
    error: Exception, expected: str
) -> None:
    there = pickle.loads(pickle.dumps(error))
    assert str(there) == str(error)
    with translation.override("zh-hans"):
        assert localized(error) == localized(there) == expected
        assert f"{error}" == str(error)


def test_another_name_is_put_into_it() -> None:
    said = sentence_for("came_back", server="A #-1", taker="B").replaced({"A #-1": "A (new)"})
    assert (said, said.code) == ("A (new) came back as B", "came_back")


def test_a_wrong_parameter_is_found_where_it_is_made() -> None:
    for parameters in ({}, {"second": 1}):
        with pytest.raises(KeyError):
            sentence_for("found_late", **parameters)
    with pytest.raises(KeyError):
        sentence_for("no_such_code")

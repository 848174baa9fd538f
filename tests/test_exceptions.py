"""The texts of errors, in both languages."""

import ast
import datetime
import pickle
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from resourcepool import options
from resourcepool.events import Sentence, localized
from resourcepool.exceptions import BadOption, Hidden
from tests.spawned import ROOT

BUSY = BadOption("queue", ["7"], because="orders has it already")
# What begins so names a value; a reason is a clause, and passed as "because".
CLAUSES = (
    "it ",
    "there ",
    "only ",
    "call ",
    "these ",
    "nothing ",
    "no ",
    "each ",
    "with ",
    "without ",
    "Pool ",
)


def test_what_it_must_be_is_said_as_that_and_a_reason_as_a_reason() -> None:
    assert (
        str(BadOption("params", [1], "a JSON object")) == "params=[1] is not allowed: it must be a JSON object"
    )
    assert str(BUSY) == "queue=['7'] is not allowed: orders has it already"
    assert str(BadOption("password", Hidden(), "text")) == "password: it must be text"
    assert (
        str(BadOption("password", Hidden(), because="no field is called so"))
        == "password: no field is called so"
    )


def test_both_are_said_in_the_readers_language() -> None:
    error = BadOption(
        "n", 0, Sentence("a whole number from %(count_least)s to %(count_most)s", count_least=1, count_most=9)
    )
    with translation.override("zh-hans"):
        assert localized(error) == "不允许 n=0：应为1 到 9 之间的整数"


@pytest.mark.parametrize("error", [BUSY, BadOption("ttl", 0, "more than 0")])
def test_it_is_the_same_in_another_process_and_about_an_option_of_another_name(error: BadOption) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.why) == (str(error), error.why)
    assert str(error.of("--x")) == str(error).replace(error.name, "--x", 1)


def test_no_refusal_of_the_package_takes_a_reason_for_what_it_must_be() -> None:
    found = []
    for path in (Path(ROOT) / "resourcepool").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_refusal = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BadOption"
            if is_refusal and len(node.args) > 2:  # type: ignore[attr-defined]
                texts = [one.value for one in ast.walk(node.args[2]) if isinstance(one, ast.Constant)]  # type: ignore[attr-defined]
                found += [(path.name, text) for text in texts if str(text).startswith(CLAUSES)]
    assert not found


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((0, "0 s"), (0.2, "0.2 s"), (90, "90 s"), (3_600, "1 hour (3,600 s)"), (7_200, "2 hours (7,200 s)")),
        *((86_400, "1 day (86,400 s)"), (315_360_000, "3,650 days (315,360,000 s)"), (100_000, "100,000 s")),
    ],
)
def test_a_limit_is_a_plain_number_with_a_unit_for_people(seconds: float, said: str) -> None:
    assert str(options.duration_text(seconds)) == said
    with pytest.raises(BadOption, match=r"seconds or a timedelta, from 0 s to") as caught:
        options.seconds("x", datetime.timedelta(seconds=-1), most=seconds)
    assert str(caught.value).endswith(f" to {said}")


def test_no_number_in_a_sentence_is_written_as_a_power_of_ten() -> None:
    numbers: dict[Any, str] = {
        3.1536e8: "315,360,000",
        1e6: "1,000,000",
        1234567.8: "1,234,568",
        31.5: "31.5",
        7: "7",
    }
    assert {one: str(Sentence("%(n)s", n=one)) for one in numbers} == numbers

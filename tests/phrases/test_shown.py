"""What the program has written down is shown in the reader's language; what people have written stays as it is."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from resourcepool.phrases.book import AFTER_A_NAME, PHRASES
from resourcepool.phrases.shown import pattern, shown
from tests.spawned import ROOT

SAID = [
    ("check: refused our login (407)", "检查：拒绝了我们的登录（407）"),
    ("found 12 s after it ran out", "在到期 12 秒后被发现"),
    (
        "3 ok, 1 bad, 0 unknown; 1 quarantined, 2 skipped; 4 in use",
        "3 个正常，1 个不可用，0 个未知；1 个隔离，2 个跳过；4 个使用中",
    ),
    (
        "0 ok, 0 bad, 0 unknown; 2 skipped: in use; 1 skipped: retired; 4 in use",
        "0 个正常，0 个不可用，0 个未知；2 个跳过：使用中；1 个跳过：已退役；4 个使用中",
    ),
    (
        "1 returned to service, 2 leases ran out, 0 of these overtaken, 0 alarms",
        "1 个恢复服务，2 个租约到期，其中 0 个已被他人获取，0 个告警",
    ),
    (
        "5 of 6 failed together (5 times: no answer in time); nothing was changed about these",
        "6 个中有 5 个同时失败（其中 5 次：未能及时应答）；对它们没有作任何改动",
    ),
    ("nothing was imported; bad lines: 1\n  line 3 (a.example): port: missing", None),
    ("x.csv: empty: there are no proxies in it", "x.csv：空文件：其中没有代理"),
    (
        "--reason='' is not allowed: one line of text, 1 to 200 printable characters",
        "不允许 --reason=''：一行文本，1 到 200 个可打印字符",
    ),
    (
        "BadOption: --reason='' is not allowed: one line of text, 1 to 200 printable characters",
        "BadOption：不允许 --reason=''：一行文本，1 到 200 个可打印字符",
    ),
    (
        "city: no such selector; resourcepool.Proxy has: host, port",
        "city：没有这样的选择条件；resourcepool.Proxy 有：host, port",
    ),
    ("url: can be read in two ways; write scheme://user:password@host:port, with %3A for :", None),
]

BY_PEOPLE = [
    "",
    "hangs since 3 am",
    "Ann: a demo",
    "broken; ask Ann, not Bob",
    "50 % of it (%s %(why)s {x}) `x`",
    "\x1b[2J<script>",
    "3 ok, 1 bad, and the rest",
    "no answer in time, said Bob",
    "x" * 5_000,
    "=" * 3_000,
]


@pytest.mark.parametrize(("text", "expected"), SAID)
def test_what_the_program_has_written_is_translated(text: str, expected: str | None) -> None:
    with translation.override("zh-hans"):
        said = shown(text)
    assert said == expected or (expected is None and said != text and said.count("\n") == text.count("\n"))


@pytest.mark.parametrize("text", [*BY_PEOPLE, *(text for text, _ in SAID)])
def test_in_english_everything_stays_as_it_is(text: str) -> None:
    for language in ("en", "en-gb"):
        with translation.override(language):
            assert shown(text) == text


@pytest.mark.parametrize("text", BY_PEOPLE)
def test_what_people_have_written_stays_as_it_is(text: str) -> None:
    with translation.override("zh-hans"):
        assert shown(text) == text


def test_each_reader_has_a_language_of_his_own() -> None:
    for _ in range(2):
        with translation.override("zh-hans"):
            assert shown("missing") == "缺失"
        with translation.override("en"):
            assert shown("missing") == "missing"


# Where sentences are made that a row, an event or an operator gets to see, and in which argument they stand.
WRITERS = {
    "BadField": 1,
    "BadOption": 2,
    "CheckerBroken": 0,
    "Fault": 1,
    "ImportRefused": 0,
    "SecretUnreadable": 0,
    "report_leak": 0,
}
FOLDERS = ("leases/keeper.py", "management", "validity", "proxies", "status", "sweeps")
FILES = (
    "options.py",
    "resources/choice.py",
    "resources/registry.py",
    "encryption/field.py",
    "resources/selectors.py",
)

# About the settings: manage.py check says them in English, too.
ABOUT_SETTINGS = ("rules.py", "address_filter.py", "checking/checker.py", "alarms.py")


def written() -> Iterator[tuple[str, str]]:
    """Yield (where, a sentence that stands there, every value in it replaced by a 7)."""
    package = Path(ROOT) / "resourcepool"
    for path in sorted(package.rglob("*.py")):
        name = str(path.relative_to(package))
        if name.startswith(FOLDERS) or name in FILES:
            module = importlib.import_module(f"resourcepool.{name.removesuffix('.py').replace('/', '.')}")
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield from _texts(node, module, name)


def _texts(call: ast.Call, module: Any, name: str) -> Iterator[tuple[str, str]]:
    called = getattr(call.func, "id", getattr(call.func, "attr", ""))
    place = WRITERS.get(called)
    if called == "BadOption" and name.endswith(ABOUT_SETTINGS):
        return
    arguments = [] if place is None else call.args[place : place + 1]
    arguments += [word.value for word in call.keywords if word.arg in ("why", "reason")]
    for argument in arguments:
        text = _text(argument, module)
        if text:
            yield f"{name}:{call.lineno}", text


def _text(node: ast.expr, module: Any) -> str:
    """Return what an expression says; "" where only its running can tell."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [
            _text(part.value, module) or "7" if isinstance(part, ast.FormattedValue) else _text(part, module)
            for part in node.values
        ]
        return "".join(parts)
    found = getattr(module, node.id, "") if isinstance(node, ast.Name) else ""
    return found if isinstance(found, str) else ""


def test_every_sentence_of_the_program_is_in_the_phrasebook() -> None:
    patterns = [pattern(phrase) for phrase in PHRASES if phrase not in AFTER_A_NAME]
    found = list(written())
    assert len(found) > 60
    strange = [(where, text) for where, text in found if not any(known.fullmatch(text) for known in patterns)]
    assert not strange

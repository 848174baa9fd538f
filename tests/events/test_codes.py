"""Every stored sentence has an entry in the table, and is made with its parameters."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation

from resourcepool.events import TEMPLATES, sentence_for
from tests.spawned import ROOT

PACKAGE = Path(ROOT) / "resourcepool"
CHINESE = re.compile("[一-鿿]")
NAMES = re.compile(r"%\((\w+)\)s")


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "sentence_for":
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node


def _literals(node: ast.expr) -> list[str]:
    """Return the codes that an argument may be, as far as they are written there."""
    if isinstance(node, ast.IfExp):
        return [*_literals(node.body), *_literals(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) else []


def test_every_sentence_is_made_with_the_parameters_that_it_names() -> None:
    wrong, seen = [], 0
    for where, call in _calls():
        given = {word.arg for word in call.keywords}
        for code in _literals(call.args[0]) if call.args and None not in given else ():
            seen += 1
            if given != set(NAMES.findall(TEMPLATES.get(str(code), "%(code_is_missing)s"))):
                wrong.append((where, code))
    assert seen > 50
    assert not wrong


def test_every_code_is_used() -> None:
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert [code for code in TEMPLATES if source.count(f'"{code}"') < 2] == []  # one of them is the table


@pytest.mark.parametrize("code", TEMPLATES)
def test_every_sentence_is_translated_with_its_parameters(code: str) -> None:
    names = NAMES.findall(TEMPLATES[code])
    with translation.override("zh-hans"):
        said = sentence_for(code, **{name: f"<{name}>" for name in names}).localized()
    assert all(f"<{name}>" in said for name in names)
    assert CHINESE.search(said) or set(re.sub("<.*?>", "", said)) <= set("，；：")

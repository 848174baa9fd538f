"""The words check finds phrases in what people read, wherever it is written, and allows what is listed."""

import pytest

from tests import words
from tests.words import RULES, hits, unexpected, unused

PYTHON = '''"""Nobody has it
any more."""

from django.utils.translation import gettext as _

nobody = ""  # so long a wait


def told(standing: str) -> str:
    return _(
        "what was changed"
        " stays so; %s is told" % standing
    )
'''


def found(path: str, content: str) -> list[tuple[int, str]]:
    return [(hit.line, hit.found) for hit in hits(path, content)]


def test_python_is_searched_in_comments_docstrings_and_texts() -> None:
    assert found("resourcepool/a.py", PYTHON) == [
        (1, "Nobody"),
        (2, "any more"),
        (6, "so long"),
        (11, "told"),
        (11, "what was changed stays"),
    ]


def test_a_phrase_may_go_over_the_end_of_a_line() -> None:
    assert found("docs/a.md", "It is held no longer,\nnor so\nlong. Nobody\nknows.") == [
        (2, "so long"),
        (3, "Nobody"),
    ]


@pytest.mark.parametrize("text", ["``told``", "`standing`", "`resourcepool_locks` shows whom: `whoever`"])
def test_inline_code_is_left_out(text: str) -> None:
    assert found("docs/a.md", text) == []
    assert found("resourcepool/a.py", f"# {text}\n") == []


@pytest.mark.parametrize("path", ["docs/a.md", "README.md", "resourcepool/templates/a.html"])
def test_pages_are_searched_whole(path: str) -> None:
    assert found(path, "one\n{% translate 'Nobody waits.' %}") == [(2, "Nobody")]


def test_markup_is_no_text() -> None:
    page = """<p class="told" title="{% translate 'told' %}">{{ one.standing }}{% if nobody %}who told{% endif %}</p>"""
    assert found("resourcepool/templates/a.html", page) == [(1, "told"), (1, "told")]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.pattern.pattern)
def test_every_rule_says_what_to_write(one: words.Rule) -> None:
    assert one.reason
    assert not one.pattern.search(one.reason)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("list at most so many", "so many"),
        ("waits for whoever asks", "whoever"),
        ("until the settings are mended", "mended"),
        ("what was changed stays so", "what was changed stays"),
        ("it is not held any more", "any more"),
        ("It stands for a lock", "stands for"),
        ("how servers and queues stand", ""),
        ("how the pools stand", "how the pools stand"),
        ("its holder is told", "told"),
        ("the lease ran out", "ran out"),
        ("of a task type", "task type"),
        ("as document 004 says", "document 004"),
        ("see R1.4", "R1.4"),
        ("gives it back", "gives it back"),
        ("a process died", "died"),
        ("a wait cycle; the queue group expires; its holder crashed", ""),
    ],
)
def test_phrases(text: str, phrase: str) -> None:
    assert [match for _, match in found("docs/a.md", text)] == ([phrase] if phrase else [])


def test_allowed_hits_are_left_out_and_others_are_not() -> None:
    hit, other = hits("docs/a.md", "A page is told apart by its name.\n\nThe holder, by contrast, is told.")
    allowed = {"docs/a.md": {"told apart": "an idiom"}}
    assert unexpected([hit, other], allowed) == [other]
    assert unexpected([hit, other], {"docs/b.md": {"told apart": "an idiom"}}) == [hit, other]
    assert unused([hit, other], allowed) == []


def test_what_is_allowed_in_vain_is_named() -> None:
    assert unused([], {"docs/a.md": {"told apart": "an idiom"}}) == [
        "docs/a.md: 'told apart' is allowed, but not there"
    ]

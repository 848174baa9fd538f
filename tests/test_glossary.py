"""docs/reference/glossary.md is sorted, defines each word once, and covers models, states, event kinds and settings."""

import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.utils import translation

from resourcepool.conf import DEFAULTS
from resourcepool.history.models import Event
from resourcepool.resources.state import State, Status, Verdict
from tests.messages import catalogue, texts_of
from tests.spawned import ROOT

PAGE = Path(ROOT) / "docs" / "reference" / "glossary.md"
ROW = re.compile(r"^\| (?!word )([^-|][^|]*) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
LABEL = re.compile(r"[*`]([^*`]+)[*`]")


def rows() -> list[tuple[str, ...]]:
    """Return (word, meaning, seen as, Chinese) of each row."""
    return ROW.findall(PAGE.read_text())


def covered() -> set[str]:
    """Return the words of the table, and the labels and names that its rows quote."""
    quoted = (label for _, meaning, seen, _ in rows() for label in LABEL.findall(f"{meaning} {seen}"))
    return {word.casefold() for word in (*(row[0] for row in rows()), *quoted)}


def states() -> Iterator[str]:
    """Yield the label of each state that a row can have."""
    for enum in (State, Status, Verdict):
        yield from map(str, enum.labels)
    for model in apps.get_app_config("resourcepool").get_models():
        for field in model._meta.fields:
            if field.name == "state":
                yield from (str(label) for _, label in field.flatchoices)


def test_the_table_is_read() -> None:
    table = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert len(rows()) == len(table) - 2 > 100


def test_rows_are_sorted_and_no_word_is_there_twice() -> None:
    words = [word.casefold() for word, *_ in rows()]
    assert words == sorted(set(words))


def test_every_model_is_covered() -> None:
    with translation.override("en"):
        names = {
            model.__name__: {str(model._meta.verbose_name), str(model._meta.verbose_name_plural)}
            for model in apps.get_app_config("resourcepool").get_models()
        }
    assert {name for name, labels in names.items() if not labels & covered()} == set()


def test_every_state_is_covered() -> None:
    with translation.override("en"):
        assert set(states()) - covered() == set()


def test_every_kind_of_event_is_covered() -> None:
    with translation.override("en"):
        assert {str(label) for _, label in Event._meta.get_field("what").flatchoices} - covered() == set()


def test_every_setting_is_covered() -> None:
    names = {
        label for _, meaning, seen, _ in rows() for label in re.findall(r"`([A-Z_]+)`", f"{meaning} {seen}")
    }
    assert DEFAULTS.keys() - names == set()


def translations() -> dict[str, str]:
    """Return {word: its Chinese} of the glossary, without words that are not on the pages."""
    return {row[0]: row[3] for row in rows() if row[3] != "-"}


def test_a_word_has_the_same_translation_on_the_pages() -> None:
    texts = {text: forms[0] for (text, _plural), forms in texts_of(catalogue("zh_Hans")).items()}
    differing = {
        word: (texts[word], there)
        for word, there in translations().items()
        if word in texts and texts[word] not in there.split("、")
    }
    assert differing == {}


def test_words_that_were_replaced_are_gone_from_the_catalogue() -> None:
    replaced = "栅栏 不良次数 判定死亡 通道 您 处理者 释放 让出 任务类型 续租 续期 筛选 死亡"
    texts = texts_of(catalogue("zh_Hans"))
    assert [
        (word, form) for word in replaced.split() for forms in texts.values() for form in forms if word in form
    ] == []

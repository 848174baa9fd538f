"""Rows store a sentence's code and parameters, and typed text unchanged."""

from typing import Any

import pytest
from django.db import connection
from django.utils import translation

from resourcepool.events import joined, localized, sentence_for
from resourcepool.events.field import SentenceField, read, stored
from resourcepool.models import Event

pytestmark = pytest.mark.django_db

LATE = sentence_for("found_late", seconds=31)
CHECK = sentence_for("check", why=sentence_for("no_such_host", host="é 🐘 \"'\\%s"))
TYPED = ["", "broken", "@home", "@@", '@["found_late",{"seconds":1}]', '["found_late"]', "50 % %(seconds)s"]


def kept(reason: Any, **fields: Any) -> Event:
    """Return an event with this reason, as it is read from the database."""
    event = Event.objects.create(at="2026-01-01T00:00Z", what="lost", reason=reason, **fields)
    return Event.objects.get(pk=event.pk)


def column(event: Event) -> str:
    """Return what the column has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reason FROM resourcepool_event WHERE id = %s", [event.pk])
        return str(cursor.fetchone()[0])


@pytest.mark.parametrize("sentence", [LATE, CHECK, joined([LATE, CHECK, LATE])])
def test_a_sentence_comes_back_as_it_was(sentence: Any) -> None:
    event = kept(sentence)
    assert event.reason == sentence
    assert (event.reason.code, event.reason.parameters) == (sentence.code, sentence.parameters)
    assert str(Event.objects.values_list("reason", flat=True).get()) == sentence
    with translation.override("zh-hans"):
        assert localized(event.reason) == localized(sentence) != sentence
    assert Event.objects.filter(reason=sentence).exists()


def test_the_row_has_no_words_of_it() -> None:
    assert column(kept(LATE)) == '@["found_late",{"seconds":31}]'
    assert column(kept(sentence_for("check", why=sentence_for("in_use")))) == '@["check",{"why":["in_use"]}]'


@pytest.mark.parametrize("text", TYPED)
def test_what_people_typed_comes_back_as_it_was_whatever_it_looks_like(text: str) -> None:
    event = kept(text)
    assert (event.reason, type(event.reason)) == (text, str)
    assert Event.objects.filter(reason=text).exists()
    with translation.override("zh-hans"):
        assert localized(event.reason) == text


def test_rows_are_found_by_their_code() -> None:
    kept(LATE)
    found = [kept(CHECK), kept(sentence_for("check", why="x"))]
    for other in ('@["check",{}]', "check", "check: x"):
        kept(other)
    assert list(Event.objects.filter(reason__code="check").order_by("pk")) == found


OF_OTHER_VERSIONS = [
    ('@["far_away",{"miles":3,"why":["in_use"]}]', "far_away (miles=3, why=in use)"),
    ('@["far_away"]', "far_away"),
    ('@["found_late",{"minutes":3}]', "found_late (minutes=3)"),
    ('@["found_late",{"seconds":null}]', "noticed None s after it expired"),
    *(
        (text, text)
        for text in ("@", "@x", "@[]", "@{}", '@["in_use",3]', '@["in_use",{},{}]', "@" + "[" * 499)
    ),
    ('@[["in_use"],{}]', "['in_use']"),
]


@pytest.mark.parametrize(("said", "expected"), OF_OTHER_VERSIONS)
def test_what_another_version_wrote_is_shown_plainly(said: str, expected: str) -> None:
    event = kept("")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE resourcepool_event SET reason = %s WHERE id = %s", [said, event.pk])
    event.refresh_from_db()
    assert event.reason == expected
    with translation.override("zh-hans"):
        assert localized(event.reason)


@pytest.mark.parametrize("length", [1, 100, 490, 5_000])
@pytest.mark.parametrize("letter", ["x", '"', "\0", "é", "\ud800", "🐘"])
def test_what_is_too_long_or_no_text_is_cut_which_can_be_seen(length: int, letter: str) -> None:
    text = letter * length
    for reason in (
        text,
        sentence_for("check", why=sentence_for("not_in_file", file=text)),
        joined([sentence_for("not_in_file", file=text)] * 20),
    ):
        event = kept(reason)
        assert len(column(event)) <= 500
        is_cut = "…" in event.reason
        assert is_cut or len(event.reason) >= len(reason.replace("\0", ""))


def test_the_columns_of_all_tables_that_tell_why_are_such() -> None:
    assert isinstance(Event._meta.get_field("reason"), SentenceField)


def test_the_shortest_form_that_fits_is_not_shorter_than_it_must_be() -> None:
    long = sentence_for("not_in_file", file="x" * 150)
    assert read(stored(long, 500)) == long
    assert read(stored(long, 120)) == f"not in {'x' * 79}…"

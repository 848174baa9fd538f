"""Events as sentences."""

from typing import Any

import pytest
from django.utils import translation

from resourcepool.elections.models import Election as ElectionRow
from resourcepool.locks.models import SemaphorePermit
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind
from resourcepool.status.event_text import SENTENCES, WHOLE, add_sentences

pytestmark = pytest.mark.django_db


def said(what: str, model: Any = Proxy, row: str = "17", **more: Any) -> str:
    event = Event(
        what=what, pool=model._meta.label_lower, row=row, **{"holder": "crawler-3", "actor": "ann", **more}
    )
    add_sentences([event])
    text: str = event.sentence  # type: ignore[attr-defined]
    return text


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("what", EventKind)
def test_each_kind_has_a_sentence_with_its_row_in_each_language(what: EventKind, language: str) -> None:
    english = said(what)
    with translation.override(language):
        sentence = said(what)
        assert (sentence == english) is (language == "en")
        assert "17" in sentence
        assert "%(" not in sentence
    assert set(WHOLE) < set(SENTENCES)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"what": EventKind.REVOKED, "reason": "stuck"}, "ann revoked proxy 17 from crawler-3: stuck"),
        ({"what": EventKind.RELEASED, "is_whole": True}, "crawler-3 acquired and released proxy 17"),
        ({"what": EventKind.RETURNED, "actor": "", "holder": ""}, "a program returned proxy 17 to service"),
        ({"what": EventKind.LOST, "holder": "", "host": "web1"}, "web1 lost proxy 17"),
        ({"what": "unheard of"}, "unheard of proxy 17"),
        (
            {"what": EventKind.ACQUIRED, "model": ElectionRow, "row": "nightly"},
            "crawler-3 was elected leader of election nightly",
        ),
        (
            {"what": EventKind.ACQUIRED, "model": SemaphorePermit, "row": "imp#orts#3"},
            "crawler-3 acquired semaphore imp#orts",
        ),
    ],
)
def test_a_sentence_says_who_did_what_and_why(more: dict[str, Any], expected: str) -> None:
    assert said(**more) == expected


def test_the_loss_of_a_revoked_lease_says_who_revoked_it() -> None:
    columns = {"pool": Proxy._meta.label_lower, "row": "17", "at": "2026-11-21T03:00Z"}
    Event.objects.create(what=EventKind.REVOKED, fence=4, actor="ann", reason="stuck", **columns)
    Event.objects.create(what=EventKind.REVOKED, fence=6, actor="bob", reason="other", **columns)
    lost = [Event(what=EventKind.LOST, fence=fence, holder="crawler-3", **columns) for fence in (4, 5)]
    add_sentences(lost)
    assert [event.sentence for event in lost] == [  # type: ignore[attr-defined]
        "crawler-3 lost proxy 17: ann revoked it: stuck",
        "crawler-3 lost proxy 17",
    ]


def test_details_are_beside_the_sentence() -> None:
    event = Event(
        what=EventKind.RELEASED, pool=Proxy._meta.label_lower, row="17", holder="crawler", host="web1"
    )
    event.pid, event.seconds, event.fence = 41, 90.0, 7
    add_sentences([event])
    assert event.details == "held for 90 s · web1/41 · fence 7"  # type: ignore[attr-defined]

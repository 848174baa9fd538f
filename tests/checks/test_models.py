"""What the code of models and classes gets wrong."""

import sys
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks

from resourcepool.models import Proxy
from resourcepool.resources.resource import Resource


def crawler(**times: Any) -> type[Resource]:
    return type("Crawler", (Resource,), {"__module__": __name__, "model": Proxy, **times})


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"occupation_delta": 60, "occupation_interval": 21}, "occupation_interval=21 is not allowed"),
        (
            {"occupation_delta": timedelta(seconds=1)},
            "occupation_interval=datetime.timedelta(seconds=30) is not",
        ),
        ({"occupation_delta": 0}, "occupation_delta=0 is not allowed"),
    ],
)
def test_a_thread_class_without_room_for_three_renewals(
    times: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "Crawler", crawler(**times), raising=False)
    (message,) = run_checks(tags=["resourcepool"])
    assert (message.id, message.obj) == ("resourcepool.E003", f"{__name__}.Crawler")
    assert message.msg.startswith(said)


def test_three_renewals_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    made = crawler(occupation_delta=60, occupation_interval=20)
    monkeypatch.setattr(sys.modules[__name__], "Crawler", made, raising=False)
    assert run_checks(tags=["resourcepool"]) == []


def test_a_class_that_nobody_can_import_is_nobodys_fault() -> None:
    made = crawler(occupation_delta=1)
    assert made in Resource.__subclasses__()
    assert run_checks(tags=["resourcepool"]) == []


def test_a_model_that_nobody_can_be_allowed_to_operate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proxy._meta, "default_permissions", ("add", "change", "delete", "view"))
    (message,) = run_checks(tags=["resourcepool"])
    assert (message.id, message.obj) == ("resourcepool.W025", Proxy)

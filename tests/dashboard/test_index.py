"""The admin's index: the dashboard first, everything else in sections."""

import re

import pytest
from django.test import Client

from tests.dashboard.test_views import client_with, text_of


def sections(client: Client, address: str = "/admin/") -> dict[str, list[str]]:
    """Return {section: the models in it} of our app, in order."""
    text = text_of(client, address).split('id="content-main"')[1]
    blocks = re.findall(r'<div class="app-resourcepool module.*?</table>', text, re.DOTALL)
    return {
        re.findall(r'class="section"[^>]*>([^<]+)<', block)[0]: re.findall(r'<tr class="model-(\w+)', block)
        for block in blocks
    }


@pytest.mark.parametrize("address", ["/admin/", "/admin/resourcepool/"])
def test_the_dashboard_comes_first_and_each_model_is_in_one_section(address: str) -> None:
    shown = sections(client_with(is_superuser=True), address)
    assert list(shown) == ["Resource pool", "Resources", "Work", "Queues", "Locks and channels", "Internals"]
    assert shown["Resource pool"] == ["dashboard", "event"]
    assert shown["Resources"] == ["proxy"]
    assert {"stream", "task", "timer", "topic", "timernode", "dispenser", "bucket"} < set(shown["Work"])
    assert set(shown["Queues"]) == {"queuegroup", "queue", "server", "move"}
    assert {"lock", "semaphorepermit", "barrier", "channel", "message", "election"} < set(
        shown["Locks and channels"]
    )
    assert set(shown["Internals"]) == {"job", "sample", "ticket"}
    every = [model for models in shown.values() for model in models]
    assert len(every) == len(set(every))


def test_a_section_in_which_the_user_may_view_nothing_is_left_out() -> None:
    assert sections(client_with("view_stream")) == {"Resource pool": ["dashboard"], "Work": ["stream"]}


def test_other_apps_stay_as_they_are() -> None:
    assert 'class="app-auth module' in text_of(client_with(is_superuser=True), "/admin/")

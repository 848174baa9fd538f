"""Countdowns: correct without JavaScript, and with all the data that the script needs."""

import re

import pytest

from resourcepool.admin.columns import countdown


@pytest.mark.parametrize(
    ("seconds", "said", "left"),
    [(48.26, "ends in 48 s", "48.3"), (-3, "ends in 0 s", "0.0"), (7_300, "ends in 2 h", "7300.0")],
)
def test_the_remaining_time_is_shown(seconds: float, said: str, left: str) -> None:
    shown = countdown(seconds, "ends in %s", "over")
    assert re.sub("<.*?>", "", shown) == said
    assert f'data-left="{left}"' in shown
    assert 'data-over="over"' in shown
    assert 'data-units="86400 %d d|3600 %d h|60 %d min|1 %d s"' in shown


def test_hostile_text_stays_text() -> None:
    shown = countdown(1, "<b>%s", '"><script>')
    assert "<b>" not in shown
    assert "<script>" not in shown

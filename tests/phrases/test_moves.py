"""Why a queue moved is written down in English, and shown in the reader's language."""

import re

import pytest
from django.utils import translation

from resourcepool.phrases import shown
from tests.queues.planning.test_changes import REASONS

CHINESE = re.compile("[一-鿿]")

WHEN_WORK_ENDS = [
    "its owner had finished its work on it",
    "given up, without an answer from the database",
    "whoever asked for it is gone",
]
SAID = [
    ("evens out: A #1 had 2, B #2 0", "均衡：A #1 原有 2 个，B #2 原有 0 个"),
    ("web, eu #17 was judged dead: no heartbeat for 2.5 s", "web, eu #17 已判定死亡：2.5 秒没有心跳"),
    ("A #1 came back as A #4", "A #1 已恢复，现为 A #4"),
    ("A #1 lacks disk=ssd, zone=eu", "A #1 缺少标签 disk=ssd, zone=eu"),
]


@pytest.mark.parametrize("reason", [*(each[-1] for each in REASONS), *WHEN_WORK_ENDS])
def test_every_reason_of_a_move_is_translated(reason: str) -> None:
    with translation.override("zh-hans"):
        assert CHINESE.search(shown(reason))


@pytest.mark.parametrize(("reason", "expected"), SAID)
def test_names_labels_and_numbers_stay_as_they_are(reason: str, expected: str) -> None:
    with translation.override("zh-hans"):
        assert shown(reason) == expected

"""A resource that is deleted just before its check."""

from typing import Any

import pytest

from resourcepool.health_checks.check import check
from resourcepool.health_checks.checker import CheckerPool
from resourcepool.models import Proxy
from tests.app.rows import columns, several


@pytest.mark.usefixtures("scripted")
def test_is_passed_over_and_the_others_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, begin = several(Proxy, 3), CheckerPool.begin

    def deleted_before(pool: CheckerPool, lease: Any) -> None:
        if lease.pk == rows[1].pk:
            Proxy.objects.filter(pk=lease.pk)._raw_delete("default")
        begin(pool, lease)

    monkeypatch.setattr(CheckerPool, "begin", deleted_before)
    seen: dict[Any, Any] = {}
    check(Proxy, on_result=lambda one: seen.update({one.pk: one.verdict}))
    assert seen == {rows[0].pk: "ok", rows[1].pk: None, rows[2].pk: "ok"}
    assert [columns(row)["holder"] for row in (rows[0], rows[2])] == ["", ""]

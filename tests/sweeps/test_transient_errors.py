"""Jobs during a transient database error: the failed statement is retried, whichever it is."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection

from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy, Sample
from resourcepool.sweeps.sweep import prune, refresh_statistics, sweep
from tests.app.rows import expire, granted, new
from tests.case_sample import EVERY

FOR_A_MOMENT = "for a moment"


@pytest.fixture(autouse=True)
def trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = dialect.error_kind

    def trouble(using: Any, error: Exception) -> ErrorKind | None:
        return ErrorKind.CONFLICT if str(error) == FOR_A_MOMENT else usual(using, error)

    monkeypatch.setattr(dialect, "error_kind", trouble)


@contextmanager
def failing(number: int) -> Iterator[list[str]]:
    """Let statement ``number`` fail once; yields all statements."""
    sent: list[str] = []

    def execute(send: Any, sql: str, *rest: Any) -> Any:
        sent.append(sql)
        if len(sent) == number:
            raise OperationalError(FOR_A_MOMENT)
        return send(sql, *rest)

    with connection.execute_wrapper(execute):
        yield sent


def prepared(settings: Any) -> None:
    """Prepare rows to be swept, counted and pruned."""
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    for model in (Event, Sample):
        model.objects.all()._raw_delete("default")
    proxy = new(Proxy)
    granted(proxy)
    expire(proxy)
    Event.objects.create(at="2000-01-01T00:00:00Z", what="acquired", pool="resourcepool.proxy", row="1")


@pytest.mark.parametrize("job", [sweep, refresh_statistics, prune])
def test_the_job_succeeds_whichever_statement_fails(job: Callable[[], str | None], settings: Any) -> None:
    prepared(settings)
    with failing(0) as sent:
        assert job()
    for number in range(1 + secrets.randbelow(EVERY), len(sent) + 1, EVERY):
        prepared(settings)
        with failing(number):
            assert job(), sent[number - 1]
    recorder.flush()
    Event.objects.all()._raw_delete("default")

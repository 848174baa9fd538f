"""The way of a lease and of a lock through the package: which files a free one passes."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from resourcepool.locks import Lock
from resourcepool.models import Proxy
from tests.app.rows import several
from tests.spawned import ROOT

PACKAGE = Path(ROOT) / "resourcepool"
LEASES = {f"leases/{name}" for name in ("keeper", "lease", "statements", "terms", "verbs")}
DATABASE = {f"db/{name}" for name in ("dialect/base", "dialect/statement", "retry", "timeouts")}
BOTH = LEASES | DATABASE | {"history/recorder", "signals", "waiting/pacing", "waiting/source"}
OF_LEASE = {"leases/free_rows", *(f"resources/{name}" for name in ("lease", "pool", "source"))}
OF_LOCK = {f"locks/{name}" for name in ("base", "lock", "lockable", "registry")}
TO_RELEASE_IT = {f"waiting/{name}" for name in ("acquire", "handover", "models", "release")}
ELSE = {"conf", "db/sync_async", "leases/models", "options"}


def lease() -> list[Any]:
    return [Proxy.pool.acquire()]


def lock() -> list[Any]:
    Lock("report").acquire()
    Lock("report").release()
    return []


@pytest.mark.only("sqlite")
@pytest.mark.parametrize(
    ("take", "passes", "sentence"),
    [
        (lease, BOTH | OF_LEASE, "- **A lease** passes {} files"),
        (lock, BOTH | OF_LOCK | TO_RELEASE_IT | ELSE, "- **A lock** passes {} files"),
    ],
)
def test_a_free_one_passes_these_files_and_no_more(
    take: Callable[[], list[Any]], passes: set[str], sentence: str, settings: Any, transactional_db: None
) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    several(Proxy, 3)
    for one in take():  # the threads run, and the row of the lock is there
        one.release()
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            passed.add(str(file.relative_to(PACKAGE).with_suffix("")))

    sys.setprofile(note)
    try:
        held = take()
    finally:
        sys.setprofile(None)
    for one in held:
        one.release()
    assert passed == passes
    assert sentence.format(len(passes)) in (Path(ROOT) / "CONTRIBUTING.md").read_text()

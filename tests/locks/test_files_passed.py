"""The way of a lock through the package: which files a free one passes; CONTRIBUTING.md tells how many."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from resourcepool.locks import Lock
from tests.spawned import ROOT

PACKAGE = Path(ROOT) / "resourcepool"
LOCKS = {f"locks/{name}" for name in ("base", "lock", "lockable", "registry")}
LEASES = {f"leases/{name}" for name in ("keeper", "lease", "models", "statements", "terms", "verbs")}
WAITING = {f"waiting/{name}" for name in ("acquire", "handover", "models", "pacing", "release", "source")}
DATABASE = {f"db/{name}" for name in ("dialect/base", "dialect/statement", "retry", "sync_async", "timeouts")}
PASSED = LOCKS | LEASES | WAITING | DATABASE | {"conf", "history/recorder", "options", "signals"}


@pytest.mark.only("sqlite")
def test_a_free_lock_passes_these_files_and_no_more(settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    Lock("report").acquire()
    Lock("report").release()  # the row is there
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(PACKAGE):
            passed.add(str(file.relative_to(PACKAGE).with_suffix("")))

    sys.setprofile(note)
    try:
        Lock("report").acquire()
        Lock("report").release()
    finally:
        sys.setprofile(None)
    assert passed == PASSED
    assert f"- **A lock** passes {len(PASSED)} files" in (Path(ROOT) / "CONTRIBUTING.md").read_text()

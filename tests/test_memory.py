"""The place of temporary test files."""

import os
import tempfile
from pathlib import Path

import pytest

from tests import memory
from tests.memory import files_in_memory


@pytest.fixture(autouse=True)
def _is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(memory, "MEMORY", tmp_path)
    monkeypatch.setattr(memory, "has_room", lambda: True)
    return tmp_path


def test_they_are_in_memory_as_long_as_the_run_lasts(room: Path) -> None:
    with files_in_memory():
        folder = Path(tempfile.mkdtemp())
        assert room in folder.parents
        assert os.environ["TMPDIR"] == str(folder.parent)
    assert not folder.parent.exists()
    assert "TMPDIR" not in os.environ
    assert room not in Path(tempfile.gettempdir()).parents


def test_they_are_where_somebody_says(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with files_in_memory():
        assert os.environ["TMPDIR"] == str(tmp_path)
    assert os.environ["TMPDIR"] == str(tmp_path)


def test_without_room_they_are_where_they_always_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROOM", 2**60)
    with files_in_memory():
        assert "TMPDIR" not in os.environ
    monkeypatch.setattr(memory, "MEMORY", Path("/nowhere"))
    assert not memory.has_room()

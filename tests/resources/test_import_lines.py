"""Files that are not text, too large, or missing."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from resourcepool.exceptions import ImportRefused
from resourcepool.resources import import_file
from resourcepool.resources.import_file import read_lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "proxies.csv"


def refusal(name: object) -> str:
    with pytest.raises(ImportRefused) as refused:
        list(read_lines(str(name)))
    return str(refused.value)


@pytest.mark.parametrize("content", [b"a\nb", b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb\n"])
def test_lines_are_numbered_and_have_no_ends(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert list(read_lines(str(file))) == [(1, "a"), (2, "b")]


def test_an_empty_file_has_no_lines(file: Path) -> None:
    file.touch()
    assert list(read_lines(str(file))) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"host\nab\0c", "line 2, byte 3 is a NUL: this is a binary file or UTF-16, not UTF-8"),
        (b"host\nabc\xe4d", "line 2, byte 4: 0xe4 is not UTF-8; save the file as UTF-8"),
        (b"\xef\xbb\xbfabc\xe4d", "line 1, byte 7: 0xe4 is not UTF-8; save the file as UTF-8"),
        ("host".encode("utf-16"), "line 1, byte 4 is a NUL: this is a binary file or UTF-16, not UTF-8"),
        (b"a\rb\rc\r", "line 1 has a carriage return in the middle"),
        (b"a" * 100_001, "line 1 is longer than 100,000 bytes"),
        (b"a\n" * 10 + b"a" * 200_000, "line 11 is longer than 100,000 bytes"),
    ],
)
def test_what_is_no_utf8_text_is_refused_with_its_place(file: Path, content: bytes, reason: str) -> None:
    file.write_bytes(content)
    assert reason in refusal(file)


def test_a_refusal_does_not_carry_the_line(file: Path) -> None:
    file.write_bytes(b"http://joe:secret\xff@a.example:80")
    with pytest.raises(ImportRefused) as refused:
        list(read_lines(str(file)))
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_huge_file_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"a\n" * 11)
    monkeypatch.setattr(import_file, "MAX_LINES", 11)
    assert len(list(read_lines(str(file)))) == 11
    monkeypatch.setattr(import_file, "MAX_LINES", 10)
    assert refusal(file) == "too large: at most 10 lines and 100 MB; split it"
    monkeypatch.undo()
    monkeypatch.setattr(import_file, "MAX_BYTES", 21)
    assert "too large" in refusal(file)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_file_without_end_is_given_up_at_once() -> None:
    assert "binary file" in refusal("/dev/zero")


def test_a_missing_file_and_a_directory_are_refused(file: Path) -> None:
    assert refusal(file) == "cannot be read: No such file or directory"
    assert refusal(file.parent) == "cannot be read: Is a directory"


def test_a_file_that_fails_in_the_middle_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disk(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    file.touch()
    monkeypatch.setattr(Path, "open", lambda *args: Disk())
    assert refusal(file) == "cannot be read: Input/output error"


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert list(read_lines("-")) == [(1, "a"), (2, "b")]
    monkeypatch.setattr("sys.stdin", None)
    assert refusal("-") == "closed"

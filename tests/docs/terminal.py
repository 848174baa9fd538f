"""A shell that is typed into, and a Python that is: what a reader of a page has before them."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

DEADLINE = float(os.environ.get("DOCS_DEADLINE", "120"))  # seconds; for what hangs, not for what is slow
PAUSE = 0.5  # seconds between two tries of a command, for each is a new process
DONE, HERE = "the-command-has-ended", "the-folder-is"
# What the tests have instead: their own environment, and the wheel on its path.
SKIPPED = re.compile(
    r"^(python3? -m venv|\. \S*/activate|source \S*/activate|pip install|python -m pip install)\b"
)

INTERPRETER = f"""
import django, json, sys, traceback
django.setup()
names = {{"__name__": "__main__"}}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "block", "exec"), names)
        print("{DONE}", 0, flush=True)
    except BaseException:
        traceback.print_exc()
        print("{DONE}", 1, flush=True)
"""


class Typed:
    """A program that reads commands and says when each has ended; what it prints is kept."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.printed = ""
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self.changed:
                self.printed += line
                self.changed.notify_all()

    def type(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def wait_for(self, pattern: str, start: int) -> re.Match[str]:
        """Return the first match of what was printed from ``start`` on."""
        end = time.monotonic() + DEADLINE
        with self.changed:
            while not (found := re.compile(pattern).search(self.printed, start)):
                if self.process.poll() is not None or not self.changed.wait(end - time.monotonic()):
                    raise AssertionError(f"{pattern!r} was not printed:\n{self.printed[start:]}")
        return found

    def ended(self, start: int) -> int:
        """Return the code of the command that was typed at ``start``."""
        return int(self.wait_for(rf"{DONE} (\d+)", start)[1])

    def close(self) -> None:
        """End it and all that it has started: a shell's jobs have groups of their own, but its session."""
        subprocess.run(["pkill", "-KILL", "-s", str(self.process.pid)], check=False)
        self.process.wait()
        self.reader.join()
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()


class Terminal:
    """The terminals of one reader: one shell, in which services run in the background, and one Python."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, {**os.environ, **environment}
        self.places: dict[str, str] = {}  # addresses on the page -> those of the test
        self.shell = Typed(["bash"], folder, self.environment)
        # Its input ends when the tests do, however that happens; then its jobs must not stay behind.
        self.shell.type("set -m; trap 'for job in $(jobs -p); do kill -KILL -- -$job; done' EXIT\n")
        self.python: Typed | None = None
        self.start = 0

    def run(self, command: str, output: Sequence[str], marks: Mapping[str, str]) -> None:
        """Type a command; wait until it has ended, and has printed this."""
        if SKIPPED.match(command):
            return
        if "terminal" in marks:
            command = f"{{ {command}\n}} &"  # it may end with a comment
        end = time.monotonic() + DEADLINE
        while True:
            self.start = len(self.shell.printed)
            self.shell.type(f"{command}\necho {DONE} $?\n")
            code = self.shell.ended(self.start)
            if "until" not in marks or matches(output, self.shell.printed[self.start :]):
                break
            assert time.monotonic() < end, self.shell.printed[self.start :]
            time.sleep(PAUSE)
        if "sample" in marks:
            assert code <= 1, f"{command}: {code}\n{self.shell.printed[self.start :]}"  # 2: no such option
            return
        assert bool(code) == ("fails" in marks), f"{command}: {code}\n{self.shell.printed[self.start :]}"
        if "until" not in marks:
            self.expect(output)

    def expect(self, output: Sequence[str]) -> None:
        """Wait until this has been printed since the last command was typed."""
        end = time.monotonic() + DEADLINE
        while unmatched(output, self.shell.printed[self.start :]):
            with self.shell.changed:
                if not self.shell.changed.wait(end - time.monotonic()):
                    break
        missing = unmatched(output, self.shell.printed[self.start :])
        assert not missing, f"{missing!r} was not printed:\n{self.shell.printed[self.start :]}"

    def interrupt(self) -> None:
        """Press Ctrl-C in the other terminal."""
        self.start = len(self.shell.printed)
        self.shell.type(f"kill -INT %%; wait %%; echo {DONE} 0\n")
        self.shell.ended(self.start)

    def execute(self, code: str) -> None:
        """Run Python, after the code that ran before."""
        if self.python is None:
            self.python = Typed([sys.executable, "-u", "-c", INTERPRETER], self._cwd(), self.environment)
        start = len(self.python.printed)
        self.python.type(f"{json.dumps(code)}\n")
        assert self.python.ended(start) == 0, f"{code}\n{self.python.printed[start:]}"

    def _cwd(self) -> Path:
        start = len(self.shell.printed)
        self.shell.type(f"echo {HERE} $PWD; echo {DONE} 0\n")
        self.shell.ended(start)
        # Not the first line: what runs in the other terminal prints, too.
        return Path(self.shell.wait_for(rf"{HERE} (/.*)\n", start)[1])

    def write(self, path: str, text: str, *, is_appended: bool) -> None:
        """Save a file."""
        file = self._cwd() / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a" if is_appended else "w") as opened:
            opened.write(text)

    def close(self) -> None:
        for one in filter(None, (self.shell, self.python)):
            one.close()


def matches(expected: Sequence[str], printed: str) -> bool:
    return not unmatched(expected, printed, is_exact=True)


def unmatched(expected: Sequence[str], printed: str, *, is_exact: bool = False) -> str:
    """Return the first of these lines that is not printed after the one before it; "": all are.

    Spaces may differ, ".." is anything, and so are numbers, unless they have to be exact.
    """
    position = 0
    for line in filter(str.strip, expected):
        if line.strip() in ("..", "..."):
            continue
        found = pattern(line, is_exact=is_exact).search(printed, position)
        if not found:
            return line
        position = found.end()
    return ""


def pattern(line: str, *, is_exact: bool) -> re.Pattern[str]:
    """Return what finds a line: its words with any spaces between."""
    return re.compile(r"[^\S\n]+".join(_word(word, is_exact=is_exact) for word in line.split()))


def _word(word: str, *, is_exact: bool) -> str:
    if re.fullmatch(r"\.\.\.?", word):
        return ".*?"
    known = re.split(r"(\.\.\.?|(?<![\w.])[\d.,:+-]*\d[\d.,:+-]*)", word)
    for index in range(1, len(known), 2):  # what varies
        is_kept = is_exact and not known[index].startswith("..")
        known[index] = re.escape(known[index]) if is_kept else r"\S*?"
    known[::2] = map(re.escape, known[::2])
    return "".join(known)

"""A pytest plugin that prints each test as soon as it fails, and records its output as a line of JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

LONGEST = 20_000  # characters of a text that is kept


@dataclass(frozen=True)
class Failure:
    """A test that failed: how pytest names it, and all that it said."""

    nodeid: str
    text: str

    @property
    def why(self) -> str:
        """The line that says what was wrong."""
        lines = self.text.splitlines() or ["it says nothing"]
        errors = [line[1:].strip() for line in lines if line.startswith("E ")]
        return (errors or lines)[0][:200]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures", type=Path, help="the file for what failed tests said")


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if not hasattr(
        config, "workerinput"
    ):  # what a worker reports is reported once more where all of it comes together
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        config.pluginmanager.register(Failures(reporter, config.option.failures))


class Failures:
    """A run that is ended half-way has named those that it had found."""

    def __init__(self, reporter: pytest.TerminalReporter, file: Path) -> None:
        self._reporter, self._file = reporter, file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        why = "" if crash is None else f" - {crash.message.splitlines()[0][:200]}"
        self._reporter.write_line(f"\nFAILED {report.nodeid}{why}")
        with self._file.open("a") as kept:
            print(json.dumps(asdict(Failure(report.nodeid, said(report)))), file=kept)


def said(report: pytest.TestReport) -> str:
    """Return the failure, and what the test had printed and logged."""
    printed = "".join(f"\n--- {title} ---\n{text}" for title, text in report.sections)
    return f"{report.longreprtext}{printed}"[:LONGEST]


def kept(file: Path) -> list[Failure]:
    """Return what was kept in ``file``, which needs not be there."""
    return [Failure(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []

"""The blocks of a page, with what they are for.

A reader sees which file a block is: a line "`shop/models.py`:" before it, or "`mysite/settings.py`, at its end:".
Comments before a block, which a reader does not see, say the rest:

<!-- not run: why -->     it cannot run here
<!-- until -->            its command is repeated until its output is as shown
<!-- terminal -->         its command runs on in another terminal; the next Ctrl-C comment ends it
<!-- sample: of what -->   its commands run, but what they print depends on what there is
<!-- fails -->            its command ends with an error
<!-- output -->           it is what a command prints later
<!-- Ctrl-C -->           (without a block) ends what runs in the other terminal
<!-- setup: CODE -->      (without a block) Python for the blocks below
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?:\{code-block\} *)?(?P<language>[\w{}-]*)[^\n]*\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(
    r"<!-- (not run|sample|until|terminal|fails|output|Ctrl-C|setup)(?::\s(.*?))?\s?-->", re.DOTALL
)
NAMED = re.compile(r"^`([\w./@-]+\.\w+)`(?:, (?:(at its end)|[^:]*))?:$", re.MULTILINE)
OPTION = re.compile(r"^:[\w-]+:.*\n", re.MULTILINE)


@dataclass
class Block:
    """A fenced block, or a comment without one (then ``language`` is "")."""

    language: str
    body: str
    line: int
    path: str = ""
    is_appended: bool = False
    marks: dict[str, str] = field(default_factory=dict)


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    return list(_blocks(page.read_text()))


def _blocks(text: str) -> Iterator[Block]:
    end = 0
    for fence in FENCE.finditer(text):
        before = text[end : fence.start()]
        marks, line = {}, text.count("\n", 0, fence.start()) + 1
        for name, value in COMMENT.findall(before):
            if name in ("Ctrl-C", "setup"):
                yield Block("", value, line, marks={name: value})
            else:
                marks[name] = value
        last = COMMENT.sub("", before).strip().rsplit("\n", 1)[-1]
        named = NAMED.match(last)
        body = re.sub(f"^{fence['indent']}", "", fence["body"], flags=re.MULTILINE)
        yield Block(
            fence["language"],
            OPTION.sub("", body) if "{code-block}" in fence[0] else body,
            line,
            named[1] if named else "",
            bool(named and named[2]),
            marks,
        )
        end = fence.end()
    for name, value in COMMENT.findall(text[end:]):
        yield Block("", value, text.count("\n") + 1, marks={name: value})


def commands(body: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console block with the lines that it prints."""
    command, output = "", list[str]()
    for line in body.splitlines():
        if line.startswith("$ ") and not _is_open(command):
            if command:
                yield command, output
            command, output = line[2:], []
        elif _is_open(command):
            command += f"\n{line}"
        else:
            output.append(line)
    if command:
        yield command, output


def _is_open(command: str) -> bool:
    quotes = re.sub(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", "", command)
    return command.endswith("\\") or "'" in quotes or '"' in quotes

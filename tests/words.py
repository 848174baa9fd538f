"""The words check of ``make lint``: finds phrases that users and contributors should not have to guess.

python -m tests.words            prints each hit, and ends with code 1 if there is any
python -m tests.words --count    prints the number of hits per folder

It reads comments, docstrings and texts of ``resourcepool``, its templates, ``docs`` and the README; inline code is left
out. A hit that is right as it is goes into tests/allowed_words.py, with a reason.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.allowed_words import ALLOWED

ROOT = Path(__file__).resolve().parent.parent
FILES = ("resourcepool/**/*.py", "resourcepool/**/*.html", "docs/**/*.md", "README.md")
LEFT_OUT = re.compile(r"/(migrations|locale|node_modules)/")
CONTEXT = 30  # characters on each side of a hit

_INLINE_CODE = re.compile(r"``[^`]*``|`[^`\n]*`")
_MARKUP = re.compile(
    r"""\b(class|id|href|name|for|data-[\w-]+)="[^"]*"|\{\{.*?\}\}|\{%(?! *(block)?trans)[^%]*%\}"""
)


class Rule(NamedTuple):
    """A phrase to avoid, and the plain one; ``except_in``: paths of files where it is right."""

    pattern: re.Pattern[str]
    reason: str
    except_in: tuple[str, ...] = ()


def rule(pattern: str, reason: str, *except_in: str) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), reason, except_in)


RULES = (
    rule(r"\bso (long|many|often)\b", "name the quantity: this long, maximum number of rows, how often"),
    rule(r"\b(nobody|somebody|whoever|anybody)\b", "name the actor: a waiter, a process, a user, no server"),
    rule(r"\bmended\b", "fixed"),
    rule(r"\bwhat (is|was|were|are) (\w+ )?stays?\b", "name the things: completed changes were kept"),
    rule(r"\bany ?more\b", "no longer"),
    rule(r"\bstands? (in|for|so|still|before)\b", "is, is in, means, is blocked"),
    rule(r"\b(how|as) \w+( \w+)? stands?\b", "the status of"),
    rule(r"\bstandings?\b", "status"),
    rule(r"\btold\b", "notified, logged, emitted, or an active verb"),
    rule(r"\btells? (of|that|whether|how|who|what)\b", "returns, shows, records"),
    rule(r"\b(runs?|ran) out\b(?! of order)", "expires, expired"),
    rule(
        r"\btask types?\b",
        "queue group; of a stream: type of a task",
        *(
            "docs/internals/origins.md",
            "docs/internals/proofs.md",
            "docs/reference/streams.md",
            "resourcepool/taskqueue/consumer.py",
            "resourcepool/taskqueue/handlers.py",
        ),
        "resourcepool/taskqueue/submission.py",
    ),
    rule(r"\bdocument 00\d|\bR\d\.\d\b", "say it in words", "docs/internals/origins.md"),
    rule(r"\b(gives?|gave|given|giving) (it |them |\w+ )?back\b", "release, hand over"),
    rule(r"\b(takes?|took|taken|taking) (it |them |\w+ )?away\b", "revoke"),
    rule(r"\b(died|dies)\b", "crashed, exited"),
    rule(r"\bjudged dead\b", "presumed dead"),
    rule(r"\b(circles?|knots?)\b", "wait cycle, deadlock"),
    rule(r"\bput (it |them |\w+ )?(away|aside)\b", "quarantined, out of service, retired"),
    rule(r"\bvalidity checks?\b", "health check"),
    rule(r"\bwritten down\b", "recorded"),
    rule(r"\bthose who\b", "name them: users with, waiters that"),
    rule(r"\bwho(m)? (has|have|had) (it|them)\b", "the holder, the owner"),
    rule(r"\ba little\b", "give the number, or leave it out"),
)


class Hit(NamedTuple):
    """A place where a text breaks a rule; ``excerpt``: the hit with its surroundings, on one line."""

    path: str
    line: int
    found: str
    excerpt: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r} ({self.reason}): {self.excerpt}"


def hits(path: str, content: str, rules: Iterable[Rule] = RULES) -> Iterator[Hit]:
    """Yield the hits in a file, in the order of its lines."""
    found = []
    for first_line, text in texts(path, content):
        readable = _blanked(_INLINE_CODE, text)
        one_line = " ".join(readable.split("\n"))
        for one in rules:
            if path in one.except_in:
                continue
            for match in one.pattern.finditer(one_line):
                line = first_line + readable.count("\n", 0, match.start())
                start, end = max(0, match.start() - CONTEXT), match.end() + CONTEXT
                excerpt = " ".join(text[start:end].split())
                found.append(Hit(path, line, match[0], excerpt, one.reason))
    yield from sorted(found)


def texts(path: str, content: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of all that is to be read in a file: of Python, comments and strings with a blank."""
    if not path.endswith(".py"):
        yield 1, _blanked(_MARKUP, content) if path.endswith(".html") else content
        return
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Return ``text`` with blanks for each match, so that lines and columns stay the same."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def unexpected(found: Iterable[Hit], allowed: Mapping[str, Mapping[str, str]] = ALLOWED) -> list[Hit]:
    """Return the hits without those that ``allowed`` lists as {path: {part of the excerpt: reason}}."""
    return [hit for hit in found if not any(part in hit.excerpt for part in allowed.get(hit.path, ()))]


def unused(found: Sequence[Hit], allowed: Mapping[str, Mapping[str, str]] = ALLOWED) -> list[str]:
    """Return the allowed phrases that no hit needs."""
    return [
        f"{path}: {part!r} is allowed, but not there"
        for path, parts in allowed.items()
        for part in parts
        if not any(hit.path == path and part in hit.excerpt for hit in found)
    ]


def everywhere(root: Path = ROOT) -> list[Hit]:
    """Return the hits in all files."""
    paths = sorted({path for pattern in FILES for path in root.glob(pattern)})
    names = [path.relative_to(root).as_posix() for path in paths]
    return [
        hit
        for name in names
        if not LEFT_OUT.search(name)
        for hit in hits(name, (root / name).read_text(encoding="utf-8"))
    ]


def folder(path: str) -> str:
    """Return the first two parts of a path to a file, without the file."""
    return "/".join(path.split("/")[:-1][:2]) or path


def main(words: Sequence[str]) -> int:
    found = everywhere()
    wrong, stale = unexpected(found), unused(found)
    if "--count" in words:
        for name, count in sorted(Counter(folder(hit.path) for hit in wrong).items()):
            print(f"{count:5} {name}")
        print(f"{len(wrong):5} in all")
        return 0
    for line in (*wrong, *stale):
        print(line)
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

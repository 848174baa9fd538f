"""Parts of reference pages that are read from the code: ``<!-- generated: NAME -->`` in a page becomes Markdown.

A page is never a second copy of a setting, a command, a permission or a metric: it has prose, and this fills in facts.
"""

import argparse
import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.utils import translation

import resourcepool
from resourcepool import conf, signals
from resourcepool.safety.problem import TEXTS, UNSAFE_WARNINGS
from resourcepool.signals import SIGNALS, EventKind
from resourcepool.status.registry import systems
from resourcepool.status.resources.pools import FIGURES

MARK = re.compile(r"^<!-- generated: (\w+)(?: (\S+))? -->$", re.MULTILINE)
PAGES = tuple(
    f"reference/{name}" for name in ("checks", "commands", "events", "metrics", "permissions", "settings")
)
PACKAGE = Path(resourcepool.__file__).parent


def fill(page: str) -> str:
    """Return the page with its generated parts."""
    with translation.override("en"):
        return MARK.sub(lambda found: PARTS[found[1]](*filter(None, [found[2]])), page)


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    lines = [list(head), *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def settings() -> str:
    """Every setting: the comment above it in conf.py, and its default."""
    source = inspect.getsource(conf).partition("DEFAULTS: ")[2]
    sections, comment = [], ""
    for found in re.finditer(r'((?:^    # .*\n)*)^    "([A-Z_]+)": ', source, re.MULTILINE):
        comment = re.sub(r"\s*# ", " ", found[1]).strip() or comment  # one comment may be about two settings
        default = _literal(conf.DEFAULTS[found[2]])
        sections.append(f"### `{found[2]}`\n\n{comment}\n\nDefault: `{default}`")
    return "\n\n".join(sections)


def _literal(value: object) -> str:
    return re.sub(r"\b(\d+)\.0\b", r"\1", repr(value)).replace("'", '"')


def commands() -> str:
    """Every command, from its parser."""
    names = sorted(name for name, app in get_commands().items() if app.startswith("resourcepool"))
    return "\n\n".join(_command(name) for name in names)


def _command(name: str) -> str:
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    examples = str(parser.epilog or "").partition("\n\nExit codes")[0].removeprefix("Examples:\n")
    parts = [f"## {name}", _sentence(parser.description)]
    parts += [f"```text\n{inspect.cleandoc(examples)}\n```"] if examples else []
    parts += _arguments(parser)
    for sub in _subcommands(parser):
        for word, child in sub.choices.items():
            helped = {one.dest: one.help for one in sub._choices_actions}
            parts += [f"### {name} {word}", _sentence(helped.get(word)), *_arguments(child)]
    return "\n\n".join(part for part in parts if part)


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[Any]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield action


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    everywhere = _options_of_django()
    rows = [
        [f"`{_spelled(action)}`", _sentence(_help(parser, action))]
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction)
        and action.help != argparse.SUPPRESS
        and not everywhere.intersection(action.option_strings)
    ]
    return [table(["argument", "meaning"], rows)] if rows else []


def _options_of_django() -> set[str]:
    parser = BaseCommand().create_parser("manage.py", "any")
    return {word for action in parser._actions for word in action.option_strings}


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def _spelled(action: argparse.Action) -> str:
    if action.option_strings:
        value = argparse.HelpFormatter("")._format_args(action, str(action.metavar or action.dest.upper()))
        return f"{', '.join(action.option_strings)} {value}".strip()
    return argparse.HelpFormatter("")._format_args(action, str(action.metavar or action.dest))


def _sentence(text: object) -> str:
    said = " ".join(str(text or "").split())
    return f"{said[:1].upper()}{said[1:].removesuffix('.')}." if said else ""


def events() -> str:
    """Every kind of event, with its signal."""
    names = {id(value): name for name, value in vars(signals).items()}
    rows = [[f"`{kind.value}`", str(kind.label), f"`{names[id(SIGNALS[kind])]}`"] for kind in EventKind]
    return table(["kind", "in the admin", "signal"], rows)


def metrics() -> str:
    """Every gauge of ``GET metrics``."""
    rows = [
        ["`resourcepool_pool_resources`", "`pool`, `state`", "Resources by state."],
    ]
    for word, figures in [("pool", FIGURES), *((system.word, system.figures) for system in systems())]:
        label = "-" if word == "locks" else f"`{word}`"
        of_gauges = (figure.gauge for figure in figures if figure.gauge)
        rows += [[f"`resourcepool_{word}_{name}`", label, about] for name, about in of_gauges]
    return table(["gauge", "labels", "value"], rows)


def permissions() -> str:
    """Every model's permissions."""
    rows = []
    for model in apps.get_app_config("resourcepool").get_models():
        words = [
            f"`{word}_{model._meta.model_name}`"
            for word in (
                "view",
                "add",
                "change",
                "delete",
                "operate",
                "lease",
                "quarantine",
                "submit",
                "publish",
            )
            if word in model._meta.default_permissions
        ]
        if words:
            rows.append([str(model._meta.verbose_name_plural), ", ".join(words)])
    return table(["rows", "permissions"], sorted(rows))


def check(code: str) -> str:
    """One check: what it reports and how to fix it, as the code says it."""
    texts = [text for key, text in TEXTS.items() if key.split()[0] == code]
    said = [(text.message, text.hint) for text in texts] or list(_reported(code))
    parts = []
    for message, hint in said:
        if not re.search(r"[a-z]", re.sub(r"<[^>]*>", "", message)):
            continue  # put together elsewhere
        parts.append(f"> {_plain(message)}\n>\n> {_plain(hint)}" if hint else f"> {_plain(message)}")
    level = "error" if code.startswith("E") else "unsafe" if code in UNSAFE_WARNINGS else "warning"
    return "\n\n".join([f"*{level}*", *parts])


def _plain(text: str) -> str:
    """Return a message with `..` for each parameter, as literal text."""
    shown = re.sub(r"%\((\w+)\)[srd]", r"<\1>", text)
    return re.sub(r"([*_<>`\\\[\]])", r"\\\1", shown)


def _reported(code: str) -> Iterator[tuple[str, str]]:
    """Yield (message, hint) of the checks that write them where they report: checks/*.py and others."""
    wanted = (code, f"resourcepool.{code}")
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text()
        if not any(f'"{one}"' in source for one in wanted):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                keywords = {key.arg: key.value for key in node.keywords}
                if _text(keywords.get("id")) in wanted:
                    yield _text(node.args[0]), _text(keywords.get("hint"))
            elif isinstance(node, ast.Tuple) and _text(node.elts[0] if node.elts else None) in wanted:
                yield _text(node.elts[1]), _text(node.elts[2])


def _text(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else f"<{ast.unparse(part.value)}>"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    return ""


PARTS: dict[str, Callable[..., str]] = {
    "check": check,
    "commands": commands,
    "events": events,
    "metrics": metrics,
    "permissions": permissions,
    "settings": settings,
}

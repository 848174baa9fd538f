"""What the operator's commands are told: pools, resources, spans of time, selectors."""

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import BooleanField
from django.utils.translation import gettext as _

from resourcepool.exceptions import BadOption
from resourcepool.operations import Field, Line, Operation, Span
from resourcepool.resources.registry import resource_model, resource_models
from resourcepool.resources.selectors import selectable

MOST_SHOWN = 10_000
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")


def span(text: str) -> float:
    """Return the seconds that "90", "90s", "15m", "2h" or "7d" say; raises ArgumentTypeError."""
    found = _SPAN.fullmatch(text.strip().lower())
    if not found or (found[2] or "s") not in UNITS:
        raise ArgumentTypeError(_("%r is no span of time; write 90s, 15m, 2h or 7d") % text)
    return float(found[1]) * UNITS[found[2] or "s"]


def limit(text: str) -> int:
    """Return how many to show; raises ArgumentTypeError."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_SHOWN:
        raise ArgumentTypeError(
            _("%(text)r is not a whole number from 1 to %(most)d") % {"text": text, "most": MOST_SHOWN}
        )
    return int(text)


def add_limit(parser: CommandParser, default: int) -> None:
    """Add ``--limit``."""
    about = _("list at most so many; default: %d") % default
    parser.add_argument("--limit", type=limit, default=default, metavar="N", help=about)


def add_selection(parser: CommandParser) -> None:
    """Add ``--tag`` and ``--where``; ``wishes`` reads them."""
    about = _("only with this tag; may be repeated: all of them")
    parser.add_argument("--tag", action="append", default=[], help=about)
    about = _("only where a field has this value, as in pool.acquire; the same field again: any of the values")
    parser.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help=about)


def fields_of(operations: Iterable[Operation]) -> list[Field]:
    """Return the fields of these operations, each once."""
    return list({field.name: field for one in operations for field in one.fields}.values())


def add_fields(parser: CommandParser, operations: Iterable[Operation], **helps: Any) -> None:
    """Add the options of these operations; ``helps``: what --help says of a field, unless it is what pages say."""
    for field in fields_of(operations):
        how: Any = {"type": span, "metavar": "SPAN"} if isinstance(field, Span) else {"default": ""}
        about = str(helps.get(field.name, field.help or field.label))
        parser.add_argument(field.option, dest=field.name, help=about, **how)


def entered(operation: Operation, options: dict[str, Any]) -> dict[str, Any]:
    """Return what was entered for the fields of ``operation``; a dry run needs nothing. Raises BadOption."""
    is_needed = not options.get("dry_run")
    found = {field.name: field.checked(options[field.name], is_needed=is_needed) for field in operation.fields}
    for field in operation.fields:
        if isinstance(field, Line) and (wrong := field.otherwise_wrong(str(found[field.name]))):
            raise BadOption(field.name, found[field.name], wrong)
    return found


def add_dry_run(parser: CommandParser) -> None:
    """Add what all have that change something and ask first: --yes, --dry-run, --json and --limit."""
    parser.add_argument("--yes", action="store_true", help=_("do not ask"))
    parser.add_argument("--dry-run", action="store_true", help=_("only list them"))
    parser.add_argument("--json", action="store_true", help=_("print one JSON object"))
    add_limit(parser, 20)


def pools(label: str | None) -> list[Any]:
    """Return the model of this pool, or all of them; raises BadOption, which names those that exist."""
    return list(resource_models()) if label is None else [resource_model(label)]


def wishes(model: Any, tags: Sequence[str], conditions: Sequence[str]) -> dict[str, Any]:
    """Return what ``--tag`` and ``--where`` say as selectors of ``model``.

    Raises:
        BadOption: a condition is not FIELD=VALUE, or a field of truth has another value.
    """
    found: dict[str, Any] = {"tags": list(tags)} if tags else {}
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not name or not equals:
            raise BadOption("--where", condition.split("=")[0], _("FIELD=VALUE, such as country=US"))
        if name in ("tag", "tags"):
            found["tags"] = [*found.get("tags", []), *value.split(",")]
        else:
            found.setdefault(name, []).append(_value(selectable(model).get(name), value))
    return {name: value[0] if len(value) == 1 else value for name, value in found.items()}


def _value(field: Any, text: str) -> Any:
    if isinstance(field, BooleanField):
        return TRUTHS.get(text.lower(), text)  # selectors refuse what is no truth, and say so
    return None if text == "" and field is not None and field.null else text

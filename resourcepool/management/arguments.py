"""The arguments of the operator's commands, as data, and how pools, spans of time and selectors are read."""

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.core.management.base import CommandParser
from django.db.models import BooleanField
from django.utils.translation import gettext as _

from resourcepool.exceptions import BadOption, Hidden
from resourcepool.labels import labels_of
from resourcepool.operations import DurationField, Field, Operation, TextField
from resourcepool.resources.registry import resource_model, resource_models
from resourcepool.resources.selectors import selectable

MAX_LIMIT = 10_000
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
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_LIMIT:
        raise ArgumentTypeError(
            _("%(text)r is not a whole number from 1 to %(most)d") % {"text": text, "most": MAX_LIMIT}
        )
    return int(text)


class Argument(NamedTuple):
    """An argument of a command: its name, what --help says of it, and the rest as ``add_argument`` takes it."""

    name: str
    about: str
    options: dict[str, Any]


def arg(name: str, about: Any, **options: Any) -> Argument:
    return Argument(name, str(about), options)


def flag(name: str, about: Any, **options: Any) -> Argument:
    return arg(name, about, action="store_true", **options)


def repeatable(name: str, about: Any, metavar: str | None = None, **options: Any) -> Argument:
    """Return an option that may be repeated; not given at all, it is an empty list."""
    return arg(name, about, **{"action": "append", "default": [], "metavar": metavar, **options})


def add(parser: CommandParser, arguments: Iterable[Argument]) -> None:
    for one in arguments:
        parser.add_argument(one.name, help=one.about, **one.options)


def limit_argument(default: int) -> Argument:
    return arg(
        "--limit", _("list at most so many; default: %d") % default, type=limit, default=default, metavar="N"
    )


def yes() -> Argument:
    """Return ``--yes``, which ``OperatorCommand.confirm`` obeys."""
    return flag("--yes", _("do not ask"))


def selection_arguments() -> list[Argument]:
    """Return ``--tag`` and ``--where``; ``criteria`` reads them."""
    where = _("only where a field has this value, as in pool.acquire; the same field again: any of the values")
    return [
        repeatable("--tag", _("only with this tag; may be repeated: all of them")),
        repeatable("--where", where, "FIELD=VALUE"),
    ]


def fields_of(operations: Iterable[Operation]) -> list[Field]:
    """Return the fields of these operations, each once."""
    return list({field.name: field for one in operations for field in one.fields}.values())


def operation_arguments(operations: Iterable[Operation], **helps: Any) -> list[Argument]:
    """Return the options of these operations; ``helps``: what --help says of a field instead of what pages say."""
    return [
        arg(
            field.option,
            helps.get(field.name, field.help or field.label),
            dest=field.name,
            **({"type": span, "metavar": "SPAN"} if isinstance(field, DurationField) else {"default": ""}),
        )
        for field in fields_of(operations)
    ]


def field_values(operation: Operation, options: dict[str, Any]) -> dict[str, Any]:
    """Return the checked values of ``operation``'s fields; a dry run needs none. Raises BadOption."""
    is_required = not options.get("dry_run")
    found = {}
    for field in operation.fields:
        if (
            isinstance(field, DurationField)
            and field.is_required
            and is_required
            and options[field.name] is None
        ):
            raise BadOption(field.option, Hidden(), because=_("it is needed; write 90s, 15m, 2h or 7d"))
        if isinstance(field, TextField):
            line = options[field.name]
            # Before its length: who gives a number of 20 digits is told of numbers. One too many is wrong enough.
            if (line or not is_required) and (wrong := field.error_for(line[: field.max_length + 1])):
                raise BadOption(field.name, line, wrong)
        found[field.name] = field.clean(options[field.name], is_required=is_required)
    return found


def change_arguments() -> list[Argument]:
    """Return the options of all commands that list the rows they will change, and ask first."""
    lists, prints = flag("--dry-run", _("only list them")), flag("--json", _("print one JSON object"))
    return [yes(), lists, prints, limit_argument(20)]


def parse_json(option: str, text: str, allowed: str) -> Any:
    """Return what JSON says; raises BadOption, with the error in ``allowed``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadOption(option, text, allowed % error) from None


def pool_models(label: str | None) -> list[Any]:
    """Return the model of this pool, or all of them; raises BadOption, which names those that exist."""
    return list(resource_models()) if label is None else [resource_model(label)]


def criteria(model: Any, tags: Sequence[str], conditions: Sequence[str]) -> dict[str, Any]:
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


def parse_labels(words: Iterable[str], option: str = "--label") -> dict[str, str]:
    """Return what KEY=VALUE words say; raises BadOption."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key in found:
            raise BadOption(option, word, _("KEY=VALUE, such as zone=eu, each key once"))
        found[key] = value
    return labels_of(found)


def _value(field: Any, text: str) -> Any:
    if isinstance(field, BooleanField):
        return TRUTHS.get(text.lower(), text)  # selectors refuse what is no truth, and say so
    return None if text == "" and field is not None and field.null else text

"""The arguments of the operator's commands, as data, and parsers of durations, pools and selectors."""

import datetime
import json
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.core.management.base import CommandParser
from django.db.models import BooleanField
from django.utils.dateparse import parse_datetime

from resourcepool.db.dialect import aware
from resourcepool.exceptions import BadOption, Hidden
from resourcepool.operations import DurationField, Field, Operation
from resourcepool.options import labels_of, parse_duration
from resourcepool.resources.registry import resource_model, resource_models
from resourcepool.resources.selectors import selectable
from resourcepool.translation import gettext as _

MAX_LIMIT = 10_000
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def span(text: str) -> float:
    """Return the seconds of "90", "90s", "15m", "2h" or "7d"; raises ArgumentTypeError."""
    seconds = parse_duration(text)
    if seconds is None:
        raise ArgumentTypeError(_("%r is not a duration; write 90s, 15m, 2h or 7d") % text)
    return seconds


def span_or_time(text: str) -> float | datetime.datetime:
    """Return the seconds of "2h", or the time "2026-11-27T14:00"; raises ArgumentTypeError."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    return span(text) if moment is None else aware(moment)


def limit(text: str) -> int:
    """Return the value of ``--limit``; raises ArgumentTypeError."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_LIMIT:
        raise ArgumentTypeError(
            _("%(text)r is not a whole number from 1 to %(most)d") % {"text": text, "most": MAX_LIMIT}
        )
    return int(text)


class Argument(NamedTuple):
    """An argument of a command: its name, its text in --help, and the other arguments of ``add_argument``."""

    name: str
    about: str
    options: dict[str, Any]


def arg(name: str, about: Any, **options: Any) -> Argument:
    return Argument(name, str(about), options)


def flag(name: str, about: Any, **options: Any) -> Argument:
    return arg(name, about, action="store_true", **options)


def repeatable(name: str, about: Any, metavar: str | None = None, **options: Any) -> Argument:
    """Return an option that may be repeated; its default is an empty list."""
    return arg(name, about, **{"action": "append", "default": [], "metavar": metavar, **options})


def add(parser: CommandParser, arguments: Iterable[Argument]) -> None:
    for argument in arguments:
        parser.add_argument(argument.name, help=argument.about, **argument.options)


def limit_argument(default: int) -> Argument:
    return arg(
        "--limit", _("maximum number of rows (default: %d)") % default, type=limit, default=default, metavar="N"
    )


def yes() -> Argument:
    """Return ``--yes``, for ``OperatorCommand.confirm``."""
    return flag("--yes", _("do not ask for confirmation"))


def selection_arguments() -> list[Argument]:
    """Return ``--tag`` and ``--where``, for ``criteria``."""
    where = _("only if the field has this value, as in pool.acquire; repeat a field to allow other values")
    return [
        repeatable("--tag", _("only with this tag; repeat to require several tags")),
        repeatable("--where", where, "FIELD=VALUE"),
    ]


def fields_of(operations: Iterable[Operation]) -> list[Field]:
    return list({field.name: field for operation in operations for field in operation.fields}.values())


def operation_arguments(operations: Iterable[Operation], *, requires: bool = False) -> list[Argument]:
    """Return the options of these operations; ``requires``: argparse refuses a command without a required one."""
    return [
        arg(
            field.option,
            field.help or field.label,
            dest=field.name,
            required=requires and field.is_required,
            **({"type": span, "metavar": "SPAN"} if isinstance(field, DurationField) else {"default": ""}),
        )
        for field in fields_of(operations)
    ]


def field_values(operation: Operation, options: dict[str, Any]) -> dict[str, Any]:
    """Return the validated values of ``operation``'s fields; a dry run needs none. Raises BadOption."""
    try:
        return operation.clean(options, is_required=not options.get("dry_run"))
    except BadOption as error:
        if error.name == DurationField.option and isinstance(error.value, Hidden):
            raise BadOption(error.name, error.value, because=_("required, e.g. 90s, 15m, 2h or 7d")) from None
        raise


def change_arguments() -> list[Argument]:
    """Return the options of all commands that list the rows to change and ask for confirmation."""
    lists, prints = flag("--dry-run", _("only list the rows")), flag("--json", _("print one JSON object"))
    return [yes(), lists, prints, limit_argument(20)]


def parse_json(option: str, text: str, allowed: str) -> Any:
    """Return the data of JSON text; raises BadOption, with the error in ``allowed``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadOption(option, text, allowed % error) from None


def pool_models(label: str | None) -> list[Any]:
    """Return the model of this pool, or all models of pools; raises BadOption, which names all pools."""
    return list(resource_models()) if label is None else [resource_model(label)]


def criteria(model: Any, tags: Sequence[str], conditions: Sequence[str]) -> dict[str, Any]:
    """Return the values of ``--tag`` and ``--where`` as selectors of ``model``.

    Raises:
        BadOption: a condition is not FIELD=VALUE.
    """
    selectors: dict[str, Any] = {"tags": list(tags)} if tags else {}
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not name or not equals:
            raise BadOption("--where", condition.split("=")[0], _("FIELD=VALUE, such as country=US"))
        if name in ("tag", "tags"):
            selectors["tags"] = [*selectors.get("tags", []), *value.split(",")]
        else:
            selectors.setdefault(name, []).append(_value(selectable(model).get(name), value))
    return {name: value[0] if len(value) == 1 else value for name, value in selectors.items()}


def parse_labels(texts: Iterable[str], option: str = "--label") -> dict[str, str]:
    """Return the labels of KEY=VALUE texts; raises BadOption."""
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or key in labels:
            raise BadOption(option, text, _("KEY=VALUE, such as zone=eu, each key once"))
        labels[key] = value
    return labels_of(labels)


def _value(field: Any, text: str) -> Any:
    if isinstance(field, BooleanField):
        return BOOLEANS.get(text.lower(), text)  # other values raise BadOption later
    return None if text == "" and field is not None and field.null else text

"""Serializers that describe answers: derived from the dataclasses that ``as_data`` returns as JSON."""

import datetime
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_origin, get_type_hints

from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DateTimeField,
    DictField,
    Field,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    Serializer,
)

AnyField = Field[Any, Any, Any, Any]
SCALARS: Mapping[Any, Callable[..., AnyField]] = {
    str: partial(CharField, allow_blank=True),
    int: IntegerField,
    float: FloatField,
    bool: BooleanField,
    datetime.datetime: DateTimeField,
    Any: JSONField,
}
ROW: Mapping[str, Any] = {"pool": str, "id": Any, "resource": str}  # of a field ``row``, see ``as_data``


def serializer(
    name: str, hints: Mapping[str, Any], about: str = "", texts: Mapping[str, str] = MappingProxyType({})
) -> type[Serializer[Any]]:
    """Return a serializer with a field for each of these type hints.

    Args:
        about: what it is.
        texts: {field: what it means}.
    """
    described = {field: field_of(hint, help_text=texts.get(field)) for field, hint in hints.items()}
    return type(name, (Serializer,), {"__doc__": about, **described})


@cache
def serializer_of(dataclass: Any) -> type[Serializer[Any]]:
    """Return the serializer of a dataclass, with the fields that ``as_data`` returns."""
    about = inspect.cleandoc(dataclass.__doc__)
    hints, texts = get_type_hints(dataclass), attribute_texts(about)
    shown: dict[str, Any] = {}
    for field in fields(dataclass):
        shown |= ROW if field.name == "row" else {field.name: hints[field.name]}
    for name in getattr(dataclass, "ALSO", ()):
        getter = getattr(dataclass, name).fget
        shown[name], texts[name] = get_type_hints(getter)["return"], inspect.cleandoc(getter.__doc__)
    return serializer(dataclass.__name__, shown, about.partition("\n\n")[0], texts)


def field_of(hint: Any, **options: Any) -> AnyField:
    """Return the field for a type hint."""
    origin, args = get_origin(hint), get_args(hint)
    if NoneType in args:
        (hint,) = (one for one in args if one is not NoneType)
        return field_of(hint, allow_null=True, **options)
    if origin in (list, tuple, Sequence):
        return ListField(child=field_of(args[0]), **options)
    if origin in (dict, Mapping):
        return DictField(child=field_of(args[1]), **options)
    if inspect.isclass(hint) and is_dataclass(hint):
        return serializer_of(hint)(**options)
    if issubclass(hint, Enum):
        return ChoiceField([(one.value, getattr(one, "label", one.value)) for one in hint], **options)
    field: Callable[..., AnyField] = hint if issubclass(hint, Serializer) else SCALARS[hint]
    return field(**options)


def attribute_texts(about: str) -> dict[str, str]:
    """Return {name: text} of the attributes in a docstring, each also of those that follow it as "``name``: text"."""
    texts: dict[str, str] = {}
    attributes = about.partition("\nAttributes:\n")[2]
    for names, text in re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n     +.*)*)", attributes, re.MULTILINE):
        first, *others = re.split(r"[;.] ``(\w+)``: ", re.sub(r"\bNone\b", "null", " ".join(text.split())))
        texts |= dict.fromkeys(names.split(", "), first)
        texts |= zip(others[::2], others[1::2], strict=True)
    return texts

"""Selectors: conditions on resources by field and tag, checked against the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from django.core.exceptions import EmptyResultSet, FieldDoesNotExist, FieldError, FullResultSet, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connections
from django.db.models import Field, JSONField, Model, Q
from django.utils.translation import gettext_noop as _

from resourcepool.database.where import Where
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, Hidden
from resourcepool.leases.models import LEASE_COLUMNS
from resourcepool.resources.state import STATE_COLUMNS
from resourcepool.resources.tags import ALLOWED_TAGS, TagsField, parse_tags

MAX_VALUES = 100
DEEPEST = 50  # lists and objects in each other; Django's filters call themselves for each

# These change while a resource is in use, or decide whether it may be leased at all.
_STATE = LEASE_COLUMNS | STATE_COLUMNS


def canonical_selector(model: type[Model], criteria: Mapping[str, Any]) -> str:
    """Return ``criteria`` as JSON text that is equal for equal wishes.

    Args:
        wishes: {field: a value, or a collection of alternative values}; ``tags`` (or ``tag``): one tag
            or several, all of which are required.

    Raises:
        BadOption: an unknown field, or a value that the field does not accept; says what is allowed.
    """
    fields = selectable(model)
    clean: dict[str, Any] = {}
    for name, value in criteria.items():
        field = fields.get("tags" if name == "tag" else name)
        if field is None:
            # The value is not shown: people try url="http://joe:secret@.." and password=".." here.
            known = ", ".join(sorted(fields))
            raise BadOption(
                name,
                Hidden(),
                because=Sentence(
                    _("no such selector; %(pool)s has: %(fields)s"), pool=model._meta.label, fields=known
                ),
            )
        if isinstance(field, TagsField):
            clean[field.name] = sorted({*clean.get(field.name, []), *_tags(name, value)})
        elif isinstance(value, list | tuple | set | frozenset):
            if not 0 < len(value) <= MAX_VALUES:
                raise BadOption(name, value, Sentence(_("1 to %(count)s values"), count=MAX_VALUES))
            values = {_text(found): found for one in value for found in (_value(field, one),)}
            clean[field.name] = [values[text] for text in sorted(values)]
        else:
            clean[field.name] = _value(field, value)
    return _text(dict(sorted(clean.items())))


def _text(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder)  # objects as they are: some databases compare their text


def selectable(model: type[Model]) -> dict[str, Field[Any, Any]]:
    """Return the fields that can be selectors: {name: field}, without those in a parent's table."""
    return {
        field.name: field
        for field in model._meta.concrete_fields
        if field.name not in _STATE
        and not isinstance(field, EncryptedTextField)
        and field.model._meta.db_table == model._meta.db_table
    }


@lru_cache(maxsize=1_000)
def where(model: type[Model], selector: str, alias: str) -> Where:
    """Return canonical ``selector`` as a condition on the table of ``model`` in database ``alias``.

    A selector that this process does not understand (another version wrote it) matches nothing.
    """
    try:
        query = model._base_manager.using(alias).filter(selector_filter(model, selector)).query
        sql, params = query.get_compiler(connection=connections[alias]).compile(query.where)
    except FullResultSet:
        return Where()
    except (EmptyResultSet, FieldError, ValidationError, AttributeError, TypeError, ValueError):
        return Where(" AND 1 = 0")  # a selector of another version must not stop the others in the same line
    return Where(f" AND {sql}", tuple(params))


def selector_filter(model: type[Model], selector: str) -> Q:
    """Return canonical ``selector`` as a Q object."""
    found = Q()
    for name, value in json.loads(selector).items():
        try:
            found &= _condition(model._meta.get_field(name), value)
        except FieldDoesNotExist:
            return Q(pk__in=[])
    return found


def _condition(field: Any, value: Any) -> Q:
    if isinstance(field, TagsField):
        return Q(*((f"{field.name}__contains", f" {word} ") for word in value))
    if isinstance(value, list) and isinstance(field, JSONField):  # "in" compares its text on MariaDB
        return reduce(or_, (Q((field.name, one)) for one in value))
    if isinstance(value, list):
        return Q((f"{field.name}__in", value))
    return Q((f"{field.name}__isnull", True)) if value is None else Q((field.name, value))


def _depth(value: Any) -> int:
    """Return how many lists and objects are in each other."""
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _tags(name: str, value: Any) -> list[str]:
    try:
        found = parse_tags(value)
    except (ValueError, TypeError):
        found = []
    if not 0 < len(found) <= MAX_VALUES:
        raise BadOption(name, value, ALLOWED_TAGS)
    return found


def _value(field: Any, value: Any) -> Any:
    target = field.target_field if field.is_relation else field
    if field.is_relation and isinstance(value, Model):
        value = value.pk
    if value is None and field.null:
        return None
    text = ""
    try:
        clean = target.to_python(value)
        if clean is not None:
            target.run_validators(clean)
            str(clean).encode()  # half a surrogate pair is text that no database accepts
            text = _text(clean)  # not of bytes, for example
            clean = clean if _depth(clean) <= DEEPEST else None
    except (
        ValidationError,
        TypeError,
        ValueError,
        ArithmeticError,
        RecursionError,
    ):  # int() of infinity overflows
        clean = None
    choices = [choice for choice, _label in target.flatchoices] if target.choices else None
    if (
        clean is None
        or isinstance(value, bool) != isinstance(clean, bool)
        or (isinstance(value, float) and isinstance(clean, int) and clean != value)  # 1.5 is not a whole number
        or "\\u0000" in text.replace("\\\\", "")  # NUL: PostgreSQL accepts no such text
        or (choices and clean not in choices)
    ):
        allowed = Sentence(_("a value for %(field)s"), field=f"{type(target).__name__} {target.name}")
        if choices:
            allowed = Sentence(_("one of %(names)s"), names=", ".join(map(repr, choices)))
        raise BadOption(field.name, value, allowed)
    return clean

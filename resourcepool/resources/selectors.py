"""Selectors: conditions on resources by field and tag, checked against the model.

Tags are lower-case words on a resource, stored as text that every database searches the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from django.core.exceptions import EmptyResultSet, FieldDoesNotExist, FieldError, FullResultSet, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connections
from django.db.models import Field, JSONField, Model, Q

from resourcepool.db.dialect.statement import Where
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.events import Sentence, localized
from resourcepool.exceptions import BadOption, Hidden
from resourcepool.leases.models import LEASE_COLUMNS
from resourcepool.resources.state import STATE_COLUMNS
from resourcepool.text import CharField
from resourcepool.translation import gettext_noop as _

MAX_VALUES = 100
MAX_DEPTH = 50  # of nested lists and objects; Django's filters recurse
TAG = re.compile(r"[a-z0-9][a-z0-9._:/=-]{0,49}")
ALLOWED_TAGS = Sentence(_("words of 1 to 50 of the characters a-z 0-9 . _ : / = -"))


def parse_tags(value: object) -> list[str]:
    """Return the tags in ``value`` (text with spaces or commas, or an iterable): lower-case, sorted, unique.

    Raises:
        ValueError: a word is not a tag.
    """
    parts: Iterable[object] = re.split(r"[\s,]+", value) if isinstance(value, str) else value  # type: ignore[assignment]
    tags = {str(part).strip().lower() for part in parts} - {""}
    for tag in tags:
        if not TAG.fullmatch(tag):
            raise ValueError(
                Sentence(_("%(tag)s is not a tag; allowed: %(allowed)s"), tag=repr(tag), allowed=ALLOWED_TAGS)
            )
    return sorted(tags)


class TagsField(CharField):
    """Accepts "eu fast", "eu,fast" or a list, and reads as "eu fast". Stored as " eu fast "."""

    def get_prep_value(self, value: Any) -> Any:
        tags = parse_tags(value or "")
        return f" {' '.join(tags)} " if tags else ""

    def from_db_value(self, value: str | None, *_rest: Any) -> str | None:
        return None if value is None else value.strip()

    def to_python(self, value: Any) -> str:
        try:
            text = " ".join(parse_tags(value or ""))
        except ValueError as error:
            raise ValidationError(localized(error)) from None
        max_length = (self.max_length or 0) - 2  # without the blanks around the text
        if len(text) > max_length:
            message = Sentence(
                _("%(count)s characters in total; at most %(most)s"), count=len(text), most=max_length
            )
            raise ValidationError(localized(message))
        return text


# These columns change with each lease, or decide whether the resource can be leased.
_STATE = LEASE_COLUMNS | STATE_COLUMNS


def canonical_selector(model: type[Model], criteria: Mapping[str, Any], options: Collection[str] = ()) -> str:
    """Return ``criteria`` as JSON text, equal for equal criteria.

    Args:
        criteria: {field: a value, or a collection of alternative values}; ``tags`` (or ``tag``): one or several tags,
            all of which are required.
        options: names of options to suggest for a misspelt name in ``criteria``.

    Raises:
        BadOption: an unknown field, or a value that the field does not accept.
    """
    fields = selectable(model)
    clean: dict[str, Any] = {}
    for name, value in criteria.items():
        field = fields.get("tags" if name == "tag" else name)
        if field is None:
            raise _unknown(name, model, fields, options)
        if isinstance(field, TagsField):
            clean[field.name] = sorted({*clean.get(field.name, []), *_tags(name, value)})
        elif isinstance(value, list | tuple | set | frozenset):
            if not 0 < len(value) <= MAX_VALUES:
                raise BadOption(name, value, Sentence(_("1 to %(count)s values"), count=MAX_VALUES))
            values = {
                _text(clean_value): clean_value for clean_value in (_value(field, item) for item in value)
            }
            clean[field.name] = [values[text] for text in sorted(values)]
        else:
            clean[field.name] = _value(field, value)
    return _text(dict(sorted(clean.items())))


def _unknown(name: str, model: type[Model], fields: Collection[str], options: Collection[str]) -> BadOption:
    known = {"pool": model._meta.label, "fields": ", ".join(sorted(fields))}
    because = Sentence(_("no such selector; %(pool)s has: %(fields)s"), **known)
    # An option of another method: ``wait`` of ``acquire`` is none of ``lease``.
    others = [other for other in (*sorted(options), *fields) if other != name]
    if close := get_close_matches(name, others, 1):
        text = _("no such selector; did you mean %(name)s? %(pool)s has: %(fields)s")
        because = Sentence(text, name=close[0], **known)
    # The value is hidden, because people try url="http://joe:secret@.." and password="..".
    return BadOption(name, Hidden(), because=because)


def _text(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder)  # keys keep their order: some databases compare the text


def selectable(model: type[Model]) -> dict[str, Field[Any, Any]]:
    """Return {name: field} of the possible selectors; not of columns in a parent's table."""
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

    A selector written by another version, with fields that this process does not know, matches no rows.
    """
    try:
        query = model._base_manager.using(alias).filter(selector_filter(model, selector)).query
        sql, params = query.get_compiler(connection=connections[alias]).compile(query.where)
    except FullResultSet:
        return Where()
    except (EmptyResultSet, FieldError, ValidationError, AttributeError, TypeError, ValueError):
        return Where(" AND 1 = 0")  # written by another version: it must not block other waiters
    return Where(f" AND {sql}", tuple(params))


def selector_filter(model: type[Model], selector: str) -> Q:
    """Return canonical ``selector`` as a Q object."""
    condition = Q()
    for name, value in json.loads(selector).items():
        try:
            condition &= _condition(model._meta.get_field(name), value)
        except FieldDoesNotExist:  # written by another version
            return Q(pk__in=[])
    return condition


def _condition(field: Any, value: Any) -> Q:
    if isinstance(field, TagsField):
        return Q(*((f"{field.name}__contains", f" {word} ") for word in value))
    if isinstance(value, list) and isinstance(field, JSONField):  # on MariaDB, "in" compares the JSON text
        return reduce(or_, (Q((field.name, item)) for item in value))
    if isinstance(value, list):
        return Q((f"{field.name}__in", value))
    return Q((f"{field.name}__isnull", True)) if value is None else Q((field.name, value))


def _depth(value: Any) -> int:
    """Return the depth of nested lists and objects."""
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def _tags(name: str, value: Any) -> list[str]:
    try:
        tags = parse_tags(value)
    except (ValueError, TypeError):
        tags = []
    if not 0 < len(tags) <= MAX_VALUES:
        raise BadOption(name, value, ALLOWED_TAGS)
    return tags


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
            str(clean).encode()  # no database accepts half a surrogate pair
            text = _text(clean)  # fails for bytes, for example
            clean = clean if _depth(clean) <= MAX_DEPTH else None
    # int() of infinity overflows
    except (ValidationError, TypeError, ValueError, ArithmeticError, RecursionError):
        clean = None
    choices = [choice for choice, _label in target.flatchoices] if target.choices else None
    if (
        clean is None
        or isinstance(value, bool) != isinstance(clean, bool)
        or (isinstance(value, float) and isinstance(clean, int) and clean != value)  # 1.5 for an integer field
        or "\\u0000" in text.replace("\\\\", "")  # PostgreSQL accepts no NUL in text
        or (choices and clean not in choices)
    ):
        allowed = Sentence(_("a value for %(field)s"), field=f"{type(target).__name__} {target.name}")
        if choices:
            allowed = Sentence(_("one of %(names)s"), names=", ".join(map(repr, choices)))
        raise BadOption(field.name, value, allowed)
    return clean


def parse_key(model: Any, value: Any, name: str = "id") -> Any:
    """Return ``value`` as a primary key of ``model``; raises BadOption for the option ``name``."""
    try:
        key = model._meta.pk.to_python(value)
        model._meta.pk.run_validators(key)  # SQLite's driver fails on numbers that are too large
    except (ValidationError, ValueError, TypeError, ArithmeticError):
        allowed = Sentence(_("a primary key of %(pool)s"), pool=model._meta.label)
        raise BadOption(name, value, allowed) from None
    return key

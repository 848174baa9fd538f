"""Selects the resources that an operator names: by primary key, or by tags and fields as in ``pool.acquire``."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.resources import selectors
from resourcepool.resources.queryset import ResourceQuerySet


def everything(model: Any) -> ResourceQuerySet:
    """Return all rows of ``model`` on the database that decides leases, including rows its default manager hides."""
    return ResourceQuerySet(model=model, using=model.pool.using)


def chosen(model: Any, pks: Sequence[str] = (), wishes: Mapping[str, Any] | None = None) -> ResourceQuerySet:
    """Return the resources with these primary keys, or without any all resources, that match ``wishes``.

    Raises:
        BadOption: a primary key that no resource has, an unknown field, or a value that the field does not accept.
    """
    rows = everything(model).filter(selectors.wanted(model, selectors.canonical(model, wishes or {})))
    if not pks:
        return rows
    wanted = [key(model, pk) for pk in pks]
    there = set(everything(model).filter(pk__in=wanted).values_list("pk", flat=True))
    for pk in wanted:
        if pk not in there:
            raise BadOption("id", str(pk), Sentence(_("no %(pool)s has it"), pool=model._meta.label))
    return rows.filter(pk__in=wanted)


def key(model: Any, text: str) -> Any:
    """Return ``text`` as a primary key of ``model``; raises BadOption."""
    try:
        value = model._meta.pk.to_python(text)
        model._meta.pk.run_validators(value)  # SQLite's driver fails on numbers that are too large
    except (ValidationError, ValueError, TypeError):
        raise BadOption("id", text, Sentence(_("a primary key of %(pool)s"), pool=model._meta.label)) from None
    return value

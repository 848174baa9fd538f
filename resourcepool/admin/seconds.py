"""Columns of seconds on pages: "7 d" where they are read, and beside the number where they are edited."""

import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.functional import lazy
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.words import column
from resourcepool.database.columns import is_seconds
from resourcepool.status.durations import exactly

UNIT = re.compile(r" ?[(（](s|秒)[)）]$")  # at the end of a label, in each language


class SecondsField(forms.FloatField):
    """A field for seconds, which shows whole ones without a fraction."""

    def prepare_value(self, value: Any) -> Any:
        """Return 604800 for 604800.0."""
        return int(value) if isinstance(value, float) and value.is_integer() else value


def explained(form: Any, model: Any, row: Any) -> Any:
    """Let the help of each field for seconds tell how long that is; return ``form``. ``row`` None: a new one."""
    for one in _columns(model):
        if field := form.base_fields.get(one.name):
            text = _("{help} Default: {time}.") if row is None else _("{help} Now: {time}.")
            seconds = one.get_default() if row is None else getattr(row, one.name)
            field.help_text = format_lazy(text, help=field.help_text, time=exactly(seconds))
    return form


def readable(fields: Iterable[Any], model: Any) -> list[Any]:
    """Return the ``fields`` of a page that nobody edits, columns of seconds as durations."""
    shown = {
        one.name: column(one.name, _without_unit(one.verbose_name), spell=exactly) for one in _columns(model)
    }
    return [shown.get(field, field) for field in fields]


def _columns(model: Any) -> list[Any]:
    return [one for one in model._meta.fields if is_seconds(one)]


def _shorn(label: Any) -> str:
    return UNIT.sub("", str(label))


_without_unit: Any = lazy(_shorn, str)  # whose language is that of whoever reads it

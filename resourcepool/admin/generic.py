"""Django's classes as the type checker wants them (they take no type parameters at run time), safe from odd addresses.

Anybody can write NUL into one, which PostgreSQL refuses, or more words than SQLite compares at once.
"""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList as DjangoChangeList
from django.core.paginator import Paginator as DjangoPaginator
from django.http import HttpRequest

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
    Paginator = DjangoPaginator[Any]
else:
    ModelAdmin, ModelForm, Paginator = admin.ModelAdmin, forms.ModelForm, DjangoPaginator

NUL = "\0"
LONGEST = 500  # letters of one parameter of a list


class Admin(ModelAdmin):
    """A page that knows no row whose key no database can hold."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row; None if there is none."""
        return None if NUL in object_id else super().get_object(request, object_id, from_field)


class ChangeList(DjangoChangeList):
    """A list that finds nothing for what no row can have."""

    def get_queryset(self, request: HttpRequest, *args: Any) -> Any:
        """Return what the filters and the search find."""
        rows = super().get_queryset(request, *args)
        asked = (text for texts in request.GET.lists() for text in texts[1])
        return rows.none() if any(NUL in text or len(text) > LONGEST for text in asked) else rows


__all__ = ["Admin", "ChangeList", "ModelForm", "Paginator"]

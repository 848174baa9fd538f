"""Django's classes as the type checker wants them: they take no type parameters when they run."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList as DjangoChangeList
from django.core.paginator import Paginator as DjangoPaginator

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
    Paginator = DjangoPaginator[Any]
else:
    Admin, ModelForm, Paginator = admin.ModelAdmin, forms.ModelForm, DjangoPaginator

ChangeList = DjangoChangeList

__all__ = ["Admin", "ChangeList", "ModelForm", "Paginator"]

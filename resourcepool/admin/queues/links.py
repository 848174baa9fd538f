"""The ways from a task type, a server or a queue to what answers the next question about it."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.admin import AdminSite
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString


def to_list(site: AdminSite, model: Any, text: object, **wanted: object) -> SafeString | str:
    """Return ``text`` as a link to the rows of ``model`` that are ``wanted``; alone if the site has no such list."""
    return _link(site, model, "changelist", text, query=f"?{urlencode(wanted)}")


def to_page(site: AdminSite, model: Any, key: object, text: object) -> SafeString | str:
    """Return ``text`` as a link to the page of the row with this key; alone if the site has no such page."""
    return _link(site, model, "change", text, key)


def _link(
    site: AdminSite, model: Any, page: str, text: object, *args: object, query: str = ""
) -> SafeString | str:
    if not site.is_registered(model):
        return str(text)
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    return format_html('<a href="{}{}">{}</a>', reverse(name, args=args, current_app=site.name), query, text)

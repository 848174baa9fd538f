"""The ways from a task type, a server or a queue to what answers the next question about it."""

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.utils.html import format_html
from django.utils.safestring import SafeString

from resourcepool.dashboard.links import address


def to_list(site: AdminSite, model: Any, text: object, **wanted: object) -> SafeString | str:
    """Return ``text`` as a link to the rows of ``model`` that are ``wanted``; alone if the site has no such list."""
    return _link(address(site, model, "changelist", **wanted), text)


def to_page(site: AdminSite, model: Any, key: Any, text: object) -> SafeString | str:
    """Return ``text`` as a link to the page of the row with this key; alone if the site has no such page."""
    return _link(address(site, model, "change", quote(key)), text)


def _link(there: str, text: object) -> SafeString | str:
    return format_html('<a href="{}">{}</a>', there, text) if there else str(text)

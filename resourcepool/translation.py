"""gettext for the texts of this app, in a context of their own.

Django merges the catalogues of all apps. Without a context our "last" or "read" would be shown by other apps, and their
"Remove" by ours.
"""

from typing import Any

from django.utils.translation import npgettext, npgettext_lazy, pgettext, pgettext_lazy

CONTEXT = "resourcepool"


def gettext(text: str) -> str:
    """Return ``text`` in the active language."""
    return pgettext(CONTEXT, text)


def gettext_lazy(text: str) -> Any:
    """Return ``text``, translated whenever it is shown."""
    return pgettext_lazy(CONTEXT, text)


def gettext_noop(text: str) -> str:
    """Return ``text`` itself, which only marks it for translators."""
    return text


def ngettext(singular: str, plural: str, number: float) -> str:
    """Return the text for ``number`` in the active language."""
    return npgettext(CONTEXT, singular, plural, int(number))


def ngettext_lazy(singular: str, plural: str, number: int | str | None = None) -> Any:
    """Return the text for ``number``, or for the parameter of that name, translated whenever it is shown."""
    return npgettext_lazy(CONTEXT, singular, plural, number)

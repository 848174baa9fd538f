"""Labels: what a server offers and what a queue requires, such as {"zone": "eu"}."""

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption

MOST = 20
MAX_LENGTH = 50
MAX_LISTED = 20


def check_labels(value: Any) -> None:
    """Refuse anything but a small object of texts; a validator for model fields. Raises ValidationError."""
    if not isinstance(value, dict) or len(value) > MOST:
        raise ValidationError(_('Labels are an object of at most 20 texts, e.g. {"zone": "eu"}.'))
    for part in (*value.keys(), *value.values()):
        if not isinstance(part, str) or not 0 < len(part) <= MAX_LENGTH or not part.isprintable():
            raise ValidationError(_("A label and its value are texts of 1 to 50 printable characters."))


def labels_of(value: Mapping[str, str] | None) -> dict[str, str]:
    """Return a caller's labels, checked; raises BadOption."""
    try:
        found = dict(value or {})
        check_labels(found)
    except (TypeError, ValueError):
        raise BadOption(
            "labels", value, Sentence(gettext_noop('a dict of texts, e.g. {"zone": "eu"}'))
        ) from None
    except ValidationError as error:
        raise BadOption("labels", value, because=" ".join(error.messages)) from None
    return found


def host_name() -> str:
    """Return this host's name, for people, as 1 to 80 printable characters; nobody may have chosen the one it has."""
    name = "".join(letter if letter.isprintable() and letter != "/" else "_" for letter in socket.gethostname())
    return name.strip()[:80].strip() or "unnamed"


def printable(name: object) -> str:
    """Return a name given by a user as one line without terminal control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(name))


def join_names(names: Sequence[str]) -> str:
    """Return the first of these names for people: "web-1, web-2, ..."."""
    more = ", ..." if len(names) > MAX_LISTED else ""
    return ", ".join(printable(name) for name in names[:MAX_LISTED]) + more


def format_labels(labels: Mapping[str, str]) -> str:
    """Return labels for people: "zone=eu, disk=ssd"."""
    return ", ".join(f"{key}={value}" for key, value in labels.items())

"""Labels such as {"zone": "eu"}, which a queue server offers and a queue requires; and names shown to people."""

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.text import printable
from resourcepool.translation import gettext_lazy as _, gettext_noop

MAX_LABELS = 20
MAX_LENGTH = 50
MAX_LISTED = 20


def check_labels(value: Any) -> None:
    """Validate labels, for model fields; raises ValidationError."""
    if not isinstance(value, dict) or len(value) > MAX_LABELS:
        raise ValidationError(_('Labels must be a JSON object with at most 20 strings, e.g. {"zone": "eu"}.'))
    for part in (*value.keys(), *value.values()):
        if not isinstance(part, str) or not 0 < len(part) <= MAX_LENGTH or not part.isprintable():
            raise ValidationError(_("Each label and its value must have 1 to 50 printable characters."))


def labels_of(value: Mapping[str, str] | None) -> dict[str, str]:
    """Return validated labels; raises BadOption."""
    try:
        labels = dict(value or {})
        check_labels(labels)
    except (TypeError, ValueError):
        raise BadOption(
            "labels", value, Sentence(gettext_noop('a dict of strings, e.g. {"zone": "eu"}'))
        ) from None
    except ValidationError as error:
        raise BadOption("labels", value, because=" ".join(error.messages)) from None
    return labels


def host_name() -> str:
    """Return this host's name as 1 to 80 printable characters, whatever the system says."""
    name = printable(socket.gethostname(), "_").replace("/", "_")
    return name.strip()[:80].strip() or "unnamed"


def join_names(names: Sequence[str]) -> str:
    """Return the first names as text: "web-1, web-2, ..."."""
    more = ", ..." if len(names) > MAX_LISTED else ""
    return ", ".join(printable(name) for name in names[:MAX_LISTED]) + more


def format_labels(labels: Mapping[str, str]) -> str:
    """Return labels as text: "zone=eu, disk=ssd"."""
    return ", ".join(f"{key}={value}" for key, value in labels.items())

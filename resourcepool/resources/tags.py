"""Tags: lower-case words on a resource, stored as text that every database searches the same way."""

import re
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError

from resourcepool.events import Sentence, localized
from resourcepool.text import CharField
from resourcepool.translation import gettext_noop as _

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

"""Tags: lower-case words on a resource, kept as text that every database can search the same way."""

import re
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence, localized
from resourcepool.text import CharField

TAG = re.compile(r"[a-z0-9][a-z0-9._:/=-]{0,49}")
ALLOWED_TAGS = Sentence(_("words of 1 to 50 of the characters a-z 0-9 . _ : / = -"))


def parse_tags(value: object) -> list[str]:
    """Return the tags in ``value`` (text with spaces or commas, or an iterable), lower-case, sorted, once each.

    Raises:
        ValueError: one of them is not a tag.
    """
    parts: Iterable[object] = re.split(r"[\s,]+", value) if isinstance(value, str) else value  # type: ignore[assignment]
    found = {str(part).strip().lower() for part in parts} - {""}
    for word in found:
        if not TAG.fullmatch(word):
            raise ValueError(
                Sentence(_("%(tag)s is not a tag; allowed: %(allowed)s"), tag=repr(word), allowed=ALLOWED_TAGS)
            )
    return sorted(found)


class TagsField(CharField):
    """Reads as "eu fast"; accepts that, "eu,fast" or a list. Stored as " eu fast "."""

    def get_prep_value(self, value: Any) -> Any:
        found = parse_tags(value or "")
        return f" {' '.join(found)} " if found else ""

    def from_db_value(self, value: str | None, *_rest: Any) -> str | None:
        return None if value is None else value.strip()

    def to_python(self, value: Any) -> str:
        try:
            found = " ".join(parse_tags(value or ""))
        except ValueError as error:
            raise ValidationError(localized(error)) from None
        longest = (self.max_length or 0) - 2  # the blanks around it
        if len(found) > longest:
            said = Sentence(_("%(count)s characters in all; at most %(most)s"), count=len(found), most=longest)
            raise ValidationError(localized(said))
        return found

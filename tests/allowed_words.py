"""Phrases that the words check (tests/words.py) allows: {path: {part of the text around the hit: reason}}."""

from collections.abc import Mapping

ALLOWED: Mapping[str, Mapping[str, str]] = {}

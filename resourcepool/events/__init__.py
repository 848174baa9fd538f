"""Sentences stored as a code with parameters, and translated when they are shown (docs/reference/events.md)."""

from resourcepool.events.field import SentenceField
from resourcepool.events.sentence import Sentence, joined, localized, sentence_for

__all__ = ["Sentence", "SentenceField", "joined", "localized", "sentence_for"]

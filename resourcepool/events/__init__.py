"""Sentences as a code with parameters, translated when they are shown (docs/history.md)."""

from resourcepool.events.field import SentenceField
from resourcepool.events.sentence import Sentence, joined, localized, sentence_for

__all__ = ["Sentence", "SentenceField", "joined", "localized", "sentence_for"]

"""What happened, and why, as a code with parameters: its words are made when somebody reads it (docs/history.md)."""

from resourcepool.events.field import SentenceField
from resourcepool.events.sentence import Sentence, joined, say, shown

__all__ = ["Sentence", "SentenceField", "joined", "say", "shown"]

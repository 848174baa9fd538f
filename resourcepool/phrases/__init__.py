"""What the program itself has written down, shown in the reader's language."""

from resourcepool.phrases.shown import shown

__all__ = ["shown"]

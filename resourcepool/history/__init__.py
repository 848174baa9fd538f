"""The history: an append-only table of events, written in the background."""

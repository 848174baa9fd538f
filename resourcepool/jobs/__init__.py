"""Periodic work that one process does at a time: who does it, when it was done last, and what came of it."""

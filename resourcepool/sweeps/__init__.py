"""Periodic repairs and records. Nothing here is needed for being correct (invariant 4): it tidies, tells and counts."""

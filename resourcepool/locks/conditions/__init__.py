"""Conditions and barriers, which notify waiters in the same way."""

"""Secrets at rest: encrypted with the keys in RESOURCEPOOL["SECRET_KEYS"], entered by people, never shown."""

"""Durations in a run, in seconds; separate from the settings, which need a running server."""

TTL = 3.0
TICKET_TTL = 6.0

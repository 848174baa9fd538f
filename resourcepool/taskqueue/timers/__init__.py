"""Timers: events that must happen at a moment, whoever is alive then (document 004)."""

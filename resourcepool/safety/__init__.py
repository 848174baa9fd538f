"""Finds out whether a database keeps what it has promised; for the system checks and the doctor."""

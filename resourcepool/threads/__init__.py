"""Threads of this process, and how they wait; nothing here knows the database."""

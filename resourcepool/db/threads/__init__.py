"""Threads of this process, and how they wait, independent of any database."""

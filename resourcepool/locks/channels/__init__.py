"""Broadcast: each message of a channel reaches everybody who subscribes to it, in one order for all (R4.1)."""

"""Channels: each message reaches all subscribers, in the same order."""

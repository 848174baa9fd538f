"""ChannelRow: each message of a channel reaches all its subscribers, in one order for all (document 004, R4.1)."""

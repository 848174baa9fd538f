"""Consumers are killed, stopped, cut off, replies lost, the database restarted: is every task done once, in order?"""

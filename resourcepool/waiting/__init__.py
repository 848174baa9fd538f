"""Tickets, hand-over and the order of service, for everything that is leased.

A waiter takes a ticket. A release gives its row straight to the first ticket in line that it fits; rows that come free
by themselves are given out by ``giving_out``. A row is left free only when nobody waits for it, or when nobody did a
moment ago (``contention.NoWaiterCache``).
"""

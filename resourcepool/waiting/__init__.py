"""Tickets, hand-over and the order of service, for all leased models.

A waiter takes a ticket. A release hands its row over to the first matching ticket (``handover``); rows that become free
without a release are assigned by polling processes (``assignment``). A released row stays free only if no ticket
matches, or if there was none when this process last checked, at most 50 ms ago (``estimates.NoWaiterCache``).
"""

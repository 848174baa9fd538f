"""Who is served next: used by everything that is leased.

A waiter takes a ticket. Whoever releases a row gives it straight to the first ticket in line that it fits; what comes
free by itself is given out by ``handover.give_out``. A row is left free only when nobody waits for it.
"""

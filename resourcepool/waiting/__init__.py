"""Claim; if nothing is free, take a ticket and look at it; who releases gives the row to the first in line.

What happens to a request, and where:

1. ``acquire`` claims a free row (one UPDATE). If that fails, it enqueues: it takes a ticket (``tickets``, ``models``)
   and scans once more, for rows that were freed before the ticket was visible.
2. ``poll``: the caller's thread looks at its ticket until it was given a row. If several threads of a process wait, one
   looks for all. ``pacing`` decides when; a wake-up (``hints``) makes it look at once.
3. ``release`` reads the first tickets and hands the row over to the first one (``handover``: row and ticket change
   together, or neither does). Only if there are no waiters, the row becomes free.
4. ``assignment`` gives rows that became free without a release (expired, new, back in service) to the first in line;
   every waiter does that from time to time.

Correctness needs only the UPDATEs of ``handover`` and the clock of the database. If a release does not see a ticket,
the scan finds the row; if a waiter crashes, its ticket and the row that was given to it expire.
"""

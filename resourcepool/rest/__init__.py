"""The REST API: leases, locks and tasks for programs in any language, and what the admin shows and does.

A project adds it to its addresses: ``path("api/", include("resourcepool.rest.urls"))``. See docs/rest.md.
"""

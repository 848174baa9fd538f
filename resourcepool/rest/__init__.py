"""The REST API: leases, locks and tasks for programs in any language, and the status and operations of the admin.

A project adds it to its URLs: ``path("api/", include("resourcepool.rest.urls"))``. See docs/reference/rest.md.
"""

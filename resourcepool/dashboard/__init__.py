"""A page of the admin site that says how the pools stand, and keeps saying it."""

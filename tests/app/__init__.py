"""A Django app like one of a project: its own resource models, and models with bare leases."""

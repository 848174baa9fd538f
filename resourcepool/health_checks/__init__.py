"""Health checks: whether each resource is still usable. A check leases the resource, like any holder."""

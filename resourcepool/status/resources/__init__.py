"""The status of pools and resources, their holders and waiters, and why a resource cannot be leased."""

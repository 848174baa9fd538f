"""Resources that only one process may use at a time, leased from a pool."""

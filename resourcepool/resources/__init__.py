"""Resources that only one process may use at a time, handed out from a pool (document 000)."""

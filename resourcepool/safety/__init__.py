"""Whether a database is safe for leases; for the system checks and the doctor."""

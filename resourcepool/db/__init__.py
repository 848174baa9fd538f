"""Everything about the database: its dialects, connections, transactions, retries and background threads."""

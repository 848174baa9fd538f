"""What happened to whom and when: an append-only table, written off the path of those who acquire."""

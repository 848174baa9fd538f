"""How locks, semaphores, read-write locks and conditions stand, name by name, and who waits for whom."""

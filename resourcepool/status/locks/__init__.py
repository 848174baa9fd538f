"""The state of locks, semaphores, read-write locks and conditions by name, and who waits for whom."""

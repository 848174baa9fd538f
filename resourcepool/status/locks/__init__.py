"""The status of locks, semaphores, read-write locks, conditions and barriers by name, and wait cycles."""

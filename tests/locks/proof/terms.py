"""What the parts of the proof agree on."""

TTL, TICKET_TTL = 2.0, 4.0  # seconds
LOCKS = 3
PERMITS = 3
READERS = (2, 4)  # one of these at a time
CAPACITY = 1  # of the buffer: who puts something in, or takes it out, often has to wait for another one
LOCK, SEMAPHORE, RWLOCK, BUFFER = "lock", "semaphore", "catalogue", "buffer"
NOT_EMPTY, NOT_FULL = "not-empty", "not-full"
PRODUCED, CONSUMED = 1_000, 1_001  # pages of steps: who put an item there, and who took it

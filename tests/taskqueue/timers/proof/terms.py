"""What the run and its nodes have agreed on; times in seconds."""

TOPIC = "proof"
TTL = 2.0
GRACE = 10.0
THREADS = 8

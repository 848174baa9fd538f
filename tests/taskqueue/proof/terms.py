"""What the run and its workers agree on; times in seconds."""

STREAM = "proof"
TERM_TTL = 1.5
TYPE = "work"
GRACE = 2.0  # within which a worker that is asked to leave ends the work in hand

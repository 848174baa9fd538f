"""What the run and its workers have agreed on; times in seconds."""

import os

CHANNEL = "proof"
NAMES = ("a", "b")
TTL = 2.0
MESSAGES = int(os.environ.get("PROOF_MESSAGES", "20000"))

"""How the servers of a proof are watched, in seconds; and what that promises."""

QUEUES = 64
HEARTBEAT, JUDGE_DEAD, RELOAD, DRAIN = 1.0, 3.0, 0.1, 8.0
QUEUE_GROUP = "proof"

UNWORKED = JUDGE_DEAD + 2 * HEARTBEAT  # no queue is left alone for longer
HANDED_OVER = 2 * HEARTBEAT  # nor, of one that leaves or joins, longer than that

"""The settings of the servers of a proof, in seconds, and the promises that follow."""

QUEUES = 64
HEARTBEAT, JUDGE_DEAD, RELOAD, DRAIN = 1.0, 3.0, 0.1, 8.0
QUEUE_GROUP = "proof"

UNWORKED = JUDGE_DEAD + 2 * HEARTBEAT  # maximum time without work on a queue
HANDED_OVER = 2 * HEARTBEAT  # the same when a server leaves or joins

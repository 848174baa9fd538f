"""What the jobs are called, in their rows and wherever they are shown."""

SWEEP, PRUNE, STATISTICS = "sweep", "prune history", "statistics"
CHECK = "check "  # and the label of the pool that is checked

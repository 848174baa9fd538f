"""The primitive: a leased row, its six verbs, the handle, the keeper, the line of waiters."""

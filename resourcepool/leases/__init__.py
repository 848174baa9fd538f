"""The primitive: a leased row, its five verbs, the handle, the keeper, the line of waiters."""

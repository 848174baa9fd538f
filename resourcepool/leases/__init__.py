"""The primitive: a leased row, its six verbs, the handle and the keeper."""

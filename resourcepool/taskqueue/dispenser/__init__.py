"""The task dispenser: tasks without end, handed in small buckets to workers that come and go (document 003)."""

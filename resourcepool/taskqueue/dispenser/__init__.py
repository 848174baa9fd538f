"""The task dispenser: it hands out an endless supply of tasks in small buckets, to workers that come and go."""

"""The lists of task types, servers, queues and moves."""

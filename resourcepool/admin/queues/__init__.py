"""The lists of queue groups, servers, queues and moves."""

"""The admin of queue groups, servers, queues and moves."""

"""The health check of proxies: one request through each, which cannot reach this host's own network."""

"""Forward proxies: a kind of resource, with its address, import and health check."""

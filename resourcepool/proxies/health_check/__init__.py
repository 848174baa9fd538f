"""Is a proxy usable? One request through it, which cannot be led into this host's own network."""

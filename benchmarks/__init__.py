"""How fast: measured side by side with other ways to do the same. ``python -m benchmarks --help``."""

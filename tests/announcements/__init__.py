"""A small app with a system of its own, declared in one module: see tests/test_new_system.py."""

"""A Django project around resourcepool: for trying it out, for its tests, and as an example to copy from."""

"""A Django project with resourcepool: to try it out, to run its tests, and as an example to copy."""

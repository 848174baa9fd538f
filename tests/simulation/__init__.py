"""A seeded simulation: a few clients, every interleaving of their statements, one clock, and a judge outside the code.

The package runs unchanged on a real SQLite file. Only what surrounds it is replaced: the clocks, sleeping, and
the moment at which each statement runs. So a schedule is a pure function of its seed, and can be repeated.
See docs/simulation.md.
"""

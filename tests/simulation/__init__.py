"""A seeded simulation: a few clients, arbitrary interleavings of their statements, one clock, and an independent judge.

The package runs unchanged on a real SQLite file. Only its environment is replaced: clocks, sleep, and
the time at which each statement runs. So a schedule is a pure function of its seed, and can be repeated.
See docs/internals/simulation.md.
"""

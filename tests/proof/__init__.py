"""Proofs: real processes use a system while they and their database fail; a checker outside looks for broken promises.

A system has a ``Proof`` (its command), a ``Model`` (its rows, its processes, what is done to them), a worker, a
checker, and guards that are removed to see that the checker objects.
"""

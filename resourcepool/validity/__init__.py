"""Validity checks (R0.7): is each resource still usable? It is leased while it is looked at, like by anybody else."""

"""Other task queues and elections, measured as ``benchmarks.streaming`` measures ours, in the same run.

``scripts`` has one file for each. It is run by a Python that has the peer's packages, and knows nothing of ours.
"""

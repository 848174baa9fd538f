"""Forward proxies: one kind of resource, with its address, its import and its check.

A file is brought in by ``source`` > ``reading`` (pure) > ``import_plan`` > ``storing``, led by ``importing``.
"""

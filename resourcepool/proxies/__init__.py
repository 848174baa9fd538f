"""Forward proxies: one kind of resource, with its address, its import and its check.

``importing`` imports a file: ``reading`` (no database) finds its proxies, ``import_plan`` compares and writes them.
"""

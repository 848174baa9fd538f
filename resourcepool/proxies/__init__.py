"""Forward proxies: one kind of resource, with its address, its import and its check.

``importing`` imports a file: ``source`` > ``reading`` (pure) > ``import_plan`` > ``storing``.
"""

"""Forward proxies: a kind of resource, with its address, import and health check.

The import: ``import_file`` reads a file without the database, ``import_plan`` compares both and writes changes.
"""

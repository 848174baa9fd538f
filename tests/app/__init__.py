"""A Django app such as a project would have: its own kinds of resources, and rows that are leased plainly."""

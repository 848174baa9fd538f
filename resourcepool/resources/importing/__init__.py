"""Brings proxies in from a file: ``source`` > ``reading`` (pure) > ``plan`` > ``storing``, led by ``proxies``."""

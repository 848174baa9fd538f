"""Addresses of the documentation."""

SITE = "https://django-resourcepool.readthedocs.io/en/latest/"  # as [project.urls] of pyproject.toml says


def documented(page: str, part: str = "") -> str:
    """Return the address of a page, or of its part: ``documented("reference/checks", "w004")``."""
    return f"{SITE}{page}.html{'#' if part else ''}{part}"

"""Addresses of the documentation, as ``[project.urls]`` of pyproject.toml says."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, metadata


def documented(page: str, part: str = "") -> str:
    """Return the address of a page, or of its part: ``documented("reference/checks", "w004")``."""
    return f"{_site()}{page}.html{'#' if part else ''}{part}"


@lru_cache(maxsize=1)
def _site() -> str:
    try:
        urls = metadata("django-resourcepool").get_all("Project-URL") or []
    except PackageNotFoundError:  # copied into a project instead of installed
        urls = []
    named: dict[str, str] = dict(url.split(", ", 1) for url in urls)
    return named.get("Documentation", "docs/")

"""Lazy names of a package: Django imports packages before models are ready.

Type checkers must not see ``__getattr__``, or they accept every name: use it in the ``else`` of ``TYPE_CHECKING``.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str], *others: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a ``__getattr__`` that imports each name on first access, and a ``__dir__`` that lists the names.

    Args:
        modules: {name: module of ``package`` that defines it}.
        others: further names to list, such as subpackages.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find, lambda: sorted([*modules, *others])

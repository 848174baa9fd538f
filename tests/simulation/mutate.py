"""Removes a guard from the package at import, to show that the simulation detects it."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tests.guards import Mutation
from tests.guards.tree import ROOT


class NotFound(Exception):
    """The guard is not in the file, or more than once."""


def take_out(mutation: Mutation) -> None:
    """Import the package without this guard; raises NotFound. Call it before any other import of the package."""
    if (times := source(mutation).count(mutation.guard)) != 1:
        raise NotFound(f"{mutation.name}: found {times} times in {mutation.file}: {mutation.guard!r}")
    module = ".".join(Path("resourcepool", mutation.file).with_suffix("").parts).removesuffix(".__init__")
    sys.meta_path.insert(0, _Finder(module, mutation))


def source(mutation: Mutation) -> str:
    """Return the source file of the guard."""
    return (ROOT / "resourcepool" / mutation.file).read_text()


class _Finder(MetaPathFinder):
    def __init__(self, module: str, mutation: Mutation) -> None:
        self._module, self._mutation = module, mutation

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin, self._mutation)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, mutation: Mutation) -> None:
        super().__init__(name, path)
        self._mutation = mutation

    def get_code(self, name: str) -> CodeType:  # without the cache of compiled files
        source = self.get_data(self.path).decode()
        return compile(source.replace(self._mutation.guard, self._mutation.without), self.path, "exec")

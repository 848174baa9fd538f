"""The modules of the site, which are in docs/ and in no package."""

import importlib.util
import sys
from typing import Any

from tests.spawned import ROOT


def generated() -> Any:
    """Return docs/generated.py."""
    if "docs_generated" not in sys.modules:
        spec = importlib.util.spec_from_file_location("docs_generated", ROOT / "docs" / "generated.py")
        assert spec
        assert spec.loader
        sys.modules["docs_generated"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["docs_generated"]

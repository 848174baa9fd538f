"""What a proof is asked to do: the options of its command."""

import argparse
import random
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any


def option(default: Any, about: str = "", metavar: str | None = None, **how: Any) -> Any:
    """Return a field of a plan; ``how``: other arguments of ``add_argument``."""
    if isinstance(default, list):
        return field(default_factory=list, metadata={"help": about, "metavar": metavar, **how})
    return field(default=default, metadata={"help": about, "metavar": metavar, **how})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What every proof is asked."""

    database: str
    seed: int

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the seed, and each field that is an ``option``."""
        parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
        for one in fields(cls):
            if one.metadata:
                parser.add_argument(f"--{one.name.replace('_', '-')}", **_argument(one))

    @classmethod
    def of(cls, chosen: argparse.Namespace) -> "Plan":
        """Return the plan that these options ask for."""
        names = [one.name for one in fields(cls) if hasattr(chosen, one.name)]
        return cls(**{name: getattr(chosen, name) for name in names})


def _argument(one: "Field[Any]") -> dict[str, Any]:
    made = one.default_factory() if one.default_factory is not MISSING else one.default
    how = {name: value for name, value in one.metadata.items() if value}
    if isinstance(made, list):
        return {"action": "append", "default": made, **how}
    if isinstance(made, bool):
        return {"action": "store_true", **how}
    return {"type": type(made), "default": made, **how}

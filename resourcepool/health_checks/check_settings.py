"""The settings of health checks: RESOURCEPOOL["CHECKS"]["app.Model"]."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.module_loading import import_string
from django.utils.translation import gettext_noop as _
from django.views.decorators.debug import sensitive_variables

from resourcepool import options
from resourcepool.conf import setting
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, Hidden
from resourcepool.health_checks.checker import Checker

GENERAL = frozenset({"checker", "timeout", "every", "at_once", "suspicious"})
WEEK = 7 * 86_400


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """The settings of the checks of one model.

    Attributes:
        every: the interval of the checks of each resource, in seconds.
        at_once: how many are checked at the same time.
        suspicious: the number of failures from which the checker is blamed, see ``check.common_cause``.
    """

    checker: Checker
    every: int
    at_once: int
    suspicious: int


@sensitive_variables()  # the address of a checker's page may have a key
def check_settings_of(model: Any) -> CheckSettings:
    """Return the settings of the checks of ``model``.

    Raises:
        BadOption: they are missing, or one is wrong and named.
    """
    where = f"RESOURCEPOOL['CHECKS'][{model._meta.label!r}]"
    chosen = setting("CHECKS").get(model._meta.label)
    if chosen is None:
        raise BadOption(
            where, Hidden(), because=Sentence(_("nothing says how to check them; see docs/health-checks.md"))
        )
    every = _every(where, chosen)  # first: it refuses what is not a dict
    return CheckSettings(
        checker=_checker(model, where, chosen),
        every=every,
        at_once=options.whole(f"{where}['at_once']", chosen.get("at_once", 20), least=1, most=200),
        suspicious=options.whole(f"{where}['suspicious']", chosen.get("suspicious", 5), least=1, most=100),
    )


def check_intervals() -> dict[str, int]:
    """Return {label of a checked model: the interval in seconds}; raises BadOption."""
    return {
        label: _every(f"RESOURCEPOOL['CHECKS'][{label!r}]", setting("CHECKS")[label])
        for label in setting("CHECKS")
    }


@sensitive_variables()
def _every(where: str, chosen: Any) -> int:
    if not isinstance(chosen, Mapping):
        raise BadOption(where, Hidden(), Sentence(_("a dict")))
    return options.whole(f"{where}['every']", chosen.get("every", 600), least=10, most=WEEK)


def _checker(model: Any, where: str, chosen: Mapping[str, Any]) -> Checker:
    path = chosen.get("checker", model.default_checker)
    timeout = options.seconds(f"{where}['timeout']", chosen.get("timeout", 10.0), least=0.1, most=300)
    own = {name: value for name, value in chosen.items() if name not in GENERAL}
    try:
        checker = import_string(path)
    except (ImportError, AttributeError, TypeError):
        checker = None
    if not (isinstance(checker, type) and issubclass(checker, Checker)):
        raise BadOption(f"{where}['checker']", path, "the dotted path of a class derived from Checker")
    try:
        return checker(timeout=timeout, **own)
    except BadOption as error:
        raise error.of(f"{where}[{error.name!r}]") from error
    except TypeError as error:  # such as "got an unexpected keyword argument 'ulr'"
        raise BadOption(where, sorted(own, key=str), because=str(error)) from error

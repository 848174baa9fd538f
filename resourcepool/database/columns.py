"""Model fields for numbers with limits, for admin forms."""

import math
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from resourcepool.options import DAY
from resourcepool.translation import gettext_lazy as _


def check_finite(value: float) -> None:
    """Raise ValidationError for NaN and infinity."""
    if not math.isfinite(value):
        raise ValidationError(_("Enter a number of seconds."))


def seconds(name: Any, default: float, help_text: Any, least: float = 0.0, most: float = DAY) -> Any:
    """Return a column for seconds from ``least`` to ``most``."""
    limits: list[Any] = [check_finite, MinValueValidator(least), MaxValueValidator(most)]
    return models.FloatField(name, default=default, validators=limits, help_text=help_text)


def is_seconds(column: Any) -> bool:
    """Whether a column was made by ``seconds``."""
    validators = getattr(column, "validators", ())
    return check_finite in validators and any(isinstance(one, MaxValueValidator) for one in validators)


def whole(name: Any, default: int, help_text: Any, least: int, most: int) -> Any:
    """Return a column for whole numbers from ``least`` to ``most``."""
    limits: list[Any] = [MinValueValidator(least), MaxValueValidator(most)]
    return models.PositiveIntegerField(name, default=default, validators=limits, help_text=help_text)

"""Hides addresses in error reports, because they contain passwords."""

import re

from django.views.debug import SafeExceptionReporterFilter


class AddressHidingFilter(SafeExceptionReporterFilter):
    """Hides settings and environment variables such as DATABASE_URL, and nested keys ``url``."""

    hidden_settings = re.compile(
        f"{SafeExceptionReporterFilter.hidden_settings.pattern}|URL|BROKER|BACKEND|HINTS", re.IGNORECASE
    )

"""What error reports leave out, besides what Django does: addresses in the settings, which carry passwords."""

import re

from django.views.debug import SafeExceptionReporterFilter


class AddressHidingFilter(SafeExceptionReporterFilter):
    """Hides settings and environment variables such as DATABASE_URL, and ``url`` wherever it is nested."""

    hidden_settings = re.compile(
        f"{SafeExceptionReporterFilter.hidden_settings.pattern}|URL|BROKER|BACKEND|HINTS", re.IGNORECASE
    )

"""Findings as Django shows them."""

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning

from resourcepool.safety.finding import Finding


def message(finding: Finding) -> CheckMessage:
    """Return ``finding`` as a message of Django's check framework."""
    kind = Error if finding.is_error else CheckWarning
    return kind(finding.message, hint=f"{finding.hint} ({finding.link})", obj=finding.about, id=finding.id)

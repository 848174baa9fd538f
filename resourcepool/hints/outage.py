"""A service that is away: how long to pause, and one line in the log when it begins and when it is over."""

import logging
import random

from resourcepool.exceptions import BadOption
from resourcepool.hints.choice import Choice

logger = logging.getLogger(__name__)


class Outage:
    """Failures in a row. Errors are logged by kind only: what clients say about a URL may contain its password."""

    def __init__(self, what: str, *, shortest: float, longest: float) -> None:
        self._what, self._shortest, self._longest = what, shortest, longest
        self._pause = 0.0

    def failed(self, choice: Choice, error: Exception) -> float:
        """Take note of a failure; return how many seconds to pause: twice as long each time, with jitter."""
        if not self._pause:
            why = str(error) if isinstance(error, BadOption) else type(error).__name__
            logger.warning(
                "hints cannot be %s by %s: %s; processes look from time to time",
                self._what,
                choice.redacted,
                why,
            )
        self._pause = min(max(self._shortest, 2 * self._pause), self._longest)
        # Or all processes would come back to a server that has just started at the same moments.
        return self._pause * random.uniform(0.5, 1)  # noqa: S311 (jitter)

    def recovered(self, choice: Choice) -> None:
        """Take note that it works."""
        if self._pause:
            self._pause = 0.0
            logger.info("hints can be %s by %s again", self._what, choice.redacted)

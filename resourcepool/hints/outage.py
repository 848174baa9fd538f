"""Back-off while a service is unavailable, with one log message at the start and one at the end."""

import logging
import random

from resourcepool.exceptions import BadOption
from resourcepool.hints.choice import Choice

logger = logging.getLogger(__name__)


class Outage:
    """Consecutive failures. Logs only the type of an error: messages of clients may contain the password."""

    def __init__(self, action: str, *, shortest: float, longest: float) -> None:
        self._action, self._shortest, self._longest = action, shortest, longest
        self._pause = 0.0

    def failed(self, choice: Choice, error: Exception) -> float:
        """Note a failure; return the seconds to pause: exponential back-off with jitter."""
        if not self._pause:
            why = str(error) if isinstance(error, BadOption) else type(error).__name__
            logger.warning(
                "hints cannot be %s by %s: %s; falling back to polling",
                self._action,
                choice.redacted,
                why,
            )
        self._pause = min(max(self._shortest, 2 * self._pause), self._longest)
        # Jitter: processes must not all reconnect at the same moment.
        return self._pause * random.uniform(0.5, 1)  # noqa: S311 (jitter)

    def recovered(self, choice: Choice) -> None:
        """Note a success."""
        if self._pause:
            self._pause = 0.0
            logger.info("hints can be %s by %s again", self._action, choice.redacted)

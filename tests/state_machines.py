"""Settings of state-machine tests: few examples in ``make test``, fewer on slow databases, many on request.

``HYPOTHESIS_PROFILE=long`` says that.
"""

from django.db import connection
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.case_sample import EVERY


def check(machine: type[RuleBasedStateMachine], *, steps: int = 25) -> None:
    """Try a third as many examples of ``machine`` as the profile has for a test, of up to ``steps`` steps each.

    On a server a third of these: there it is about the statements, no longer about their order. In a run of everything
    a third of all that, other ones each time.
    """
    profile = settings.get_profile(settings.get_current_profile_name())
    share = (3 if connection.vendor == "sqlite" else 9) * (3 if EVERY > 1 else 1)
    examples = max(1, profile.max_examples // share)
    run_state_machine_as_test(
        machine, settings=settings(profile, max_examples=examples, stateful_step_count=steps)
    )

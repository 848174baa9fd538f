"""How state machines are run: few examples in ``make test``, many with HYPOTHESIS_PROFILE=long."""

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def check(machine: type[RuleBasedStateMachine], *, steps: int = 25) -> None:
    """Try a third as many examples of ``machine`` as the profile has for a test, of up to ``steps`` steps each."""
    profile = settings.get_profile(settings.get_current_profile_name())
    examples = max(1, profile.max_examples // 3)
    run_state_machine_as_test(
        machine, settings=settings(profile, max_examples=examples, stateful_step_count=steps)
    )

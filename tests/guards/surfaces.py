"""The guards of what people see and do: commands, admin, dashboard."""

from tests.guards.mutation import Mutation

SURFACES = (
    Mutation(
        "the doctor's ticket stays",
        "safety/measuring.py",
        "        if pks:\n",
        "        if False:\n",
        ("tests/safety/test_measuring.py",),
    ),
    Mutation(
        "a password in a finding",
        "safety/diagnosis.py",
        'text.replace(str(secret), "***") if secret else text',
        "text",
        ("tests/safety/test_diagnosis.py",),
    ),
    Mutation(
        "the doctor calls everything safe",
        "management/commands/resourcepool_doctor.py",
        "raise SystemExit(1)",
        "return",
        ("tests/management/test_resourcepool_doctor.py",),
    ),
)

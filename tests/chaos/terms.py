"""What is asked for, and durations in a run, in seconds; separate from the settings, which need a running server."""

from dataclasses import dataclass

from tests.proof.plan import Plan, option

TTL = 3.0
TICKET_TTL = 6.0
# Options with which a killed server forgets what it has committed. PostgreSQL's synchronous_commit=off takes a power
# cut to show: what it does not flush it has given to the operating system a few milliseconds later.
FORGETFUL = {
    "mariadb": ["--innodb-flush-log-at-trx-commit=0"],
    "mysql": ["--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"],
}


@dataclass(frozen=True, kw_only=True)
class ChaosPlan(Plan):
    """For how long, and what is thrown how often, where that is not the usual.

    It lasts for longer where that is too short for so many ``acquisitions``: a busy machine takes longer, and is no
    excuse for an idle run.
    """

    minutes: float = option(1.0, "how long everything fails; default: 1")
    acquisitions: int = option(0, "and for longer, until there were so many", "N")
    rate: list[str] = option([], "how often something is thrown, per second", "NAME=RATE")  # noqa: RUF009
    forgetful: bool = option(False, f"the server does not flush its commits; on {', '.join(FORGETFUL)}")

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def weather(self) -> dict[str, float]:
        pairs = [one.partition("=") for one in self.rate]
        return {name: float(rate) for name, _, rate in pairs}


def server_options(plan: ChaosPlan) -> list[str]:
    """Return the options of the database server."""
    if plan.forgetful and plan.database not in FORGETFUL:
        raise SystemExit(f"--forgetful: only on {', '.join(FORGETFUL)}")
    return FORGETFUL[plan.database] if plan.forgetful else []

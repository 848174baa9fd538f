"""The guards of elections: who leads, since when, and when there is nobody."""

from tests.guards.mutation import Mutation

ELECTION, TERM = "elections/election.py", "elections/term.py"

STOPPED = "                raise self.timed_out(request, term.holder, None)\n"
CAMPAIGNS = ("tests/elections",)
COLUMNS = ("tests/taskqueue/test_models.py",)

ELECTIONS = (
    Mutation(
        "elections: the lock-delay",
        ELECTION,
        "self._lock_delay if resigned < elected else 0.0",
        "0.0",
        CAMPAIGNS,
    ),
    Mutation("elections: none after a clean end", ELECTION, "if resigned < elected else 0.0", "", CAMPAIGNS),
    Mutation("elections: a clean end is marked", TERM, "if self.is_noted:", "if False:", CAMPAIGNS),
    Mutation(
        "elections: giving up in the delay is none",
        ELECTION,
        "            columns = mine.values_list(",
        "            term.is_noted = True\n            columns = mine.values_list(",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: who is to stop does not wait",
        ELECTION,
        f"            if stop():\n{STOPPED}",
        f"            if 0:\n{STOPPED}",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: a failed beginning is given up",
        ELECTION,
        "            await mode.call(term.release_quietly)\n",
        "            pass\n",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: since when is of this term",
        ELECTION,
        "if term == elected_term else None",
        "if micros is not None else None",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: a standby that is none is refused",
        TERM,
        "if not retrying(connection, lambda: line.filter(holder=holder).update(priority=front)):",
        "if retrying(connection, lambda: line.filter(holder=holder).update(priority=front)) < 0:",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: save leaves the leader's columns",
        "elections/models.py",
        "if name in self.written_by_leaders and not by_name:",
        "if False:",
        COLUMNS,
    ),
)

"""The guards of elections."""

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
    Mutation(
        "elections: no lock-delay after a resignation",
        ELECTION,
        "if resigned < elected else 0.0",
        "",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: a resignation is stored", TERM, "if self._stores_resignation:", "if False:", CAMPAIGNS
    ),
    Mutation(
        "elections: a campaign that stops in the delay counts as resigned",
        ELECTION,
        "            columns = own_row.values_list(",
        "            term._stores_resignation = True\n            columns = own_row.values_list(",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: stop() ends the lock-delay",
        ELECTION,
        f"            if stop():\n{STOPPED}",
        f"            if 0:\n{STOPPED}",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: a failed beginning releases the term",
        ELECTION,
        "            await mode.call(term._release_quietly)\n",
        "            pass\n",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: the duration belongs to this term",
        ELECTION,
        "if term == elected_term else None",
        "if micros is not None else None",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: an unknown standby is refused",
        TERM,
        "if not retrying(connection, lambda: tickets.filter(holder=holder).update(priority=front)):",
        "if retrying(connection, lambda: tickets.filter(holder=holder).update(priority=front)) < 0:",
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

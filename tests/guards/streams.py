"""The guards of elections and streams: who leads, which task begins, and what a late attempt may write."""

from tests.guards.mutation import Mutation

ELECTION, TERM = "elections/election.py", "elections/term.py"
ATTEMPTS, LEADING, RUNNING = "taskqueue/attempts.py", "taskqueue/leading.py", "taskqueue/running.py"
CONSUMER, STATEMENTS = "taskqueue/consumer.py", "taskqueue/statements.py"
MODELS, ORDER, POLICY = "taskqueue/models.py", "taskqueue/order.py", "taskqueue/policy.py"
ABSTRACT = "taskqueue/abstract.py"
SUBMITTING, BEAT = "taskqueue/submitting.py", "celery_beat.py"

STOPPED = "                raise self.timed_out(request, term.holder, None)\n"
CAMPAIGNS = ("tests/elections",)
EACH_ATTEMPT, EACH_TURN = ("tests/taskqueue/test_attempts.py",), ("tests/taskqueue/test_leading.py",)
CHOICE, JUDGEMENT = ("tests/taskqueue/test_order.py",), ("tests/taskqueue/test_policy.py",)
SUBMITS, OPERATORS = ("tests/taskqueue/test_submit.py",), ("tests/taskqueue/test_operators.py",)
COLUMNS, ENTRIES = ("tests/taskqueue/test_models.py",), ("tests/taskqueue/test_beat_entries.py",)
BROKERS = ("tests/taskqueue/test_celery_beat.py",)
CONSUMERS = ("tests/taskqueue/test_lock_delay.py",)

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
        f"            if stop():\n{STOPPED}            term.lost.wait",
        f"            if 0:\n{STOPPED}            term.lost.wait",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: who is to stop does not wait under asyncio either",
        ELECTION,
        f"            if stop():\n{STOPPED}            await asyncio.sleep",
        f"            if 0:\n{STOPPED}            await asyncio.sleep",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: a failed beginning is given up",
        ELECTION,
        "            term.abandon()\n",
        "            pass\n",
        CAMPAIGNS,
    ),
    Mutation(
        "elections: the same under asyncio",
        ELECTION,
        "            await in_thread(term.abandon)\n",
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

LEADERS = (
    Mutation("streams: the leader's guard", LEADING, ", self._term.guard():", ":", EACH_TURN),
    Mutation("streams: paused begins nothing", LEADING, " and not policy.is_paused", "", EACH_TURN),
    Mutation("streams: stopping begins nothing", LEADING, "if may_begin and not", "if not", EACH_TURN),
    Mutation(
        "streams: strict passes over no lane",
        LEADING,
        "self._lanes_passed_over(math.inf if only_due else now) if by_lane else set()",
        "self._lanes_passed_over(math.inf if only_due else now)",
        EACH_TURN,
    ),
    Mutation(
        "streams: strict looks at one head",
        LEADING,
        "LOOKED_AT * policy.lanes if by_lane else 1",
        "LOOKED_AT * policy.lanes",
        EACH_TURN,
    ),
    Mutation(
        "streams: strict is one lane", LEADING, "policy.lanes > 1, monotonic()", "True, monotonic()", EACH_TURN
    ),
    Mutation(
        "streams: so many at a time as lanes",
        LEADING,
        "policy.lanes - len(self._running) if",
        "policy.lanes if",
        EACH_TURN,
    ),
    Mutation("streams: the end of a process begins nothing", LEADING, "if free <= 0:", "if False:", EACH_TURN),
    Mutation(
        "streams: what is sent again is looked for again",
        LEADING,
        "heads, self._due = self._due, []",
        "heads = self._due",
        EACH_TURN,
    ),
    Mutation(
        "streams: what was seen is not looked for again",
        LEADING,
        "heads, self._due = self._due, []",
        "heads, self._due = [], []",
        EACH_TURN,
    ),
    Mutation(
        "streams: who kills its process is not begun",
        LEADING,
        "after_death(policy, head.deaths) if head.deaths else None",
        "None",
        EACH_TURN,
    ),
    Mutation(
        "streams: a deleted stream ends its term",
        LEADING,
        "if policy is None:",
        "if policy is None and (policy := Policy('skip', 0, 0, 1, 1, 1, False)) is None:",
        EACH_TURN,
    ),
    Mutation(
        "streams: the lock-delay of the stream counts",
        CONSUMER,
        ', "lock_delay": row.lock_delay',
        "",
        CONSUMERS,
    ),
    Mutation("streams: only the first of a lane", ORDER, "if lane in seen:", "if False:", CHOICE),
    Mutation(
        "streams: a strict stream is one lane", ORDER, 'head.lane if by_lane else ""', "head.lane", CHOICE
    ),
    Mutation(
        "streams: nothing passes what is blocked",
        ORDER,
        " or head.state == Task.State.BLOCKED:",
        ":",
        CHOICE,
    ),
    Mutation("streams: what is in hand is not begun", ORDER, "head.pk in in_hand or ", "", CHOICE),
    Mutation("streams: a delayed task waits", ORDER, "and head.due_in > 0:", "and False:", CHOICE),
    Mutation("streams: who has died begins alone", ORDER, "if in_hand or choice.begin:", "if False:", CHOICE),
    Mutation(
        "streams: who has died and is doomed is none",
        ORDER,
        "0 < head.deaths < most_deaths",
        "head.deaths",
        CHOICE,
    ),
    Mutation("streams: nothing passes who has died", ORDER, "may_begin = False", "pass", CHOICE),
    Mutation("streams: nothing begins beside who has died", ORDER, "not any(in_hand.values())", "True", CHOICE),
    Mutation(
        "streams: the leader knows who has died",
        LEADING,
        "{task.pk: task.deaths for",
        "{task.pk: 0 for",
        EACH_TURN,
    ),
    Mutation(
        "streams: given back for later is not begun now", LEADING, "READY, result.delay", "READY", EACH_TURN
    ),
    Mutation(
        "streams: one death is forgiven",
        POLICY,
        "0 if policy.lanes > 1 and deaths == 1 else deaths",
        "deaths",
        EACH_TURN,
    ),
    Mutation("streams: not the second", POLICY, "deaths == 1 else deaths", "deaths else deaths", EACH_TURN),
    Mutation(
        "streams: no more than are free", ORDER, "may_begin and len(choice.begin) < free:", "may_begin:", CHOICE
    ),
)

TASKS = (
    Mutation(
        "streams: taking over raises the fence",
        ATTEMPTS,
        'state=State.READY, fence=F("fence") + 1, holder',
        "state=State.READY, holder",
        EACH_ATTEMPT,
    ),
    Mutation("streams: taking over counts the death", ATTEMPTS, ', deaths=F("deaths") + 1', "", EACH_ATTEMPT),
    Mutation("streams: not what this term runs", ATTEMPTS, ".exclude(term=term)", "", EACH_ATTEMPT),
    Mutation("streams: not what is ready", ATTEMPTS, ".filter(state=State.RUNNING)", "", EACH_ATTEMPT),
    Mutation(
        "streams: an attempt matches its fence",
        STATEMENTS,
        "= %s AND {self._fence} = %s AND",
        "= %s AND %s > 0 AND",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: each of several matches its fence",
        STATEMENTS,
        "AND {self._fence} = {fences} AND",
        "AND 0 < {fences} AND",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: nothing finished begins or ends",
        STATEMENTS,
        '= %s AND {self._unfinished}", list',
        '= %s", list',
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: nor does it beside others",
        STATEMENTS,
        "{fences} AND {self._unfinished}",
        "{fences}",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: begin raises the fence",
        STATEMENTS,
        "= %s, {fence} = {fence} + 1, {name['holder']} = %s, ",
        "= %s, {name['holder']} = %s, ",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: end raises the fence",
        STATEMENTS,
        "= %s, {fence} = {fence} + 1, {name['holder']} = '', ",
        "= %s, {name['holder']} = '', ",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: of several those run that were begun",
        ATTEMPTS,
        "if count == len(heads):",
        "if count:",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: begun means begun by this term",
        ATTEMPTS,
        ", state=State.RUNNING, term=term)",
        ", state=State.RUNNING)",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: begun means running",
        ATTEMPTS,
        ", state=State.RUNNING, term=term)",
        ", term=term)",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: a task's writes match its fence",
        RUNNING,
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        EACH_ATTEMPT,
    ),
    Mutation("streams: a task's guard", RUNNING, 'self._write(holder=F("holder"))', "pass", EACH_ATTEMPT),
    Mutation(
        "streams: it rolls back though it is caught",
        RUNNING,
        "with rolled_back_on_error(using):",
        "if using:",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: a guard needs a transaction",
        RUNNING,
        "if not connections[using].in_atomic_block:",
        "if False:",
        EACH_ATTEMPT,
    ),
    Mutation(
        "streams: retries are counted",
        POLICY,
        "failures <= policy.retries",
        "failures < policy.retries",
        JUDGEMENT,
    ),
    Mutation("streams: a retry waits", POLICY, "State.READY, policy.retry_delay", "State.READY", JUDGEMENT),
    Mutation(
        "streams: deaths are counted",
        POLICY,
        "deaths < policy.most_deaths",
        "deaths <= policy.most_deaths",
        JUDGEMENT,
    ),
    Mutation(
        "streams: who kills its process is kept",
        POLICY,
        "verdict if verdict.state is State.BLOCKED else Verdict(State.DEAD)",
        "verdict",
        JUDGEMENT,
    ),
)

SUBMITTED = (
    Mutation(
        "streams: a key is unique in its stream",
        "migrations/0014_streams.py",
        'models.UniqueConstraint(fields=("stream", "key"), name="resourcepool_task_key")',
        "",
        (*EACH_ATTEMPT, *SUBMITS),
    ),
    Mutation(
        "streams: a key that came in between is left",
        "taskqueue/table.py",
        "ops.insert_statement(on_conflict=OnConflict.IGNORE)",
        "ops.insert_statement()",
        SUBMITS,
    ),
    Mutation("streams: submitted twice is told", SUBMITTING, "return False", "return True", SUBMITS),
    Mutation(
        "streams: another error is none",
        SUBMITTING,
        "                raise\n            return False",
        "                pass\n            return False",
        SUBMITS,
    ),
    Mutation("streams: retry leaves the others alone", ABSTRACT, "*(self.failed(), ", "*(self, ", OPERATORS),
    Mutation(
        "streams: discard leaves the others alone",
        ABSTRACT,
        "*(self.discardable(), ",
        "*(self, ",
        OPERATORS,
    ),
    Mutation("streams: save leaves the address alone", MODELS, ' | {"address"}', "", COLUMNS),
    Mutation(
        "streams: dead-letters are not pruned",
        "sweeps/pruning.py",
        "Task.State.SKIPPED, Task.State.DISCARDED)",
        "Task.State.SKIPPED, Task.State.DISCARDED, Task.State.DEAD)",
        ("tests/sweeps/test_pruning_tasks.py",),
    ),
    Mutation("beat: a broker that is away is no failure", BEAT, "except AWAY as", "except () as", BROKERS),
    Mutation("beat: one run of an entry", BEAT, ", total_run_count=entry.total_run_count", "", ENTRIES),
    Mutation(
        "beat: the leader's guard",
        BEAT,
        "transaction.atomic(using=term.using), term.guard():",
        "transaction.atomic(using=term.using):",
        ENTRIES,
    ),
    Mutation("beat: not what is switched off", BEAT, "pk=model.pk, enabled=True,", "pk=model.pk,", ENTRIES),
    Mutation(
        "beat: noted and submitted, or neither",
        BEAT,
        "with transaction.atomic(using=term.using), term.guard():",
        "if term.ensure_held() is None:",
        ENTRIES,
    ),
)

STREAMS = (*ELECTIONS, *LEADERS, *TASKS, *SUBMITTED)

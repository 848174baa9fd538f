"""The guards of semaphores: how many there are, who may release them, what is swept."""

from tests.guards.mutation import Mutation

SEVERAL, STATEMENTS = "waiting/release.py", "leases/statements.py"
PERMITS, SEMAPHORE, REGISTRY, RESIZING, RELEASING, BASE = (
    f"locks/{name}.py" for name in ("permits", "semaphore", "registry", "resize", "bulk_release", "base")
)
SWEEP = "sweeps/pruning.py"
TOGETHER = ("tests/locks/test_permits.py",)
SEATS = tuple(f"tests/locks/test_{name}.py" for name in ("semaphore", "process_holds", "resize"))
ALL = ("tests/locks/test_bulk_release.py",)
UNUSED_AFTER = ("tests/sweeps/test_unused_names.py",)

SEMAPHORES = (
    # Rows of one name, given up together
    Mutation(
        "permits: a release together does not see who waits",
        SEVERAL,
        'unless = Where(f" AND NOT EXISTS (SELECT 1 FROM {texts.name} WHERE {texts.waits})", (line,))',
        "unless = Where(\" AND %s <> ''\", (line,))",
        TOGETHER,
    ),
    Mutation(
        "permits: half a hand-over of several stays",
        SEVERAL,
        "transaction.set_rollback(not done, using=connection.alias)",
        "pass",
        TOGETHER,
    ),
    Mutation(
        "permits: one out of service is given with others",
        SEVERAL,
        "Where(table_of(connection, model).claimable)",
        "Where()",
        TOGETHER,
    ),
    Mutation(
        "permits: several are given to the ticket as it was seen",
        SEVERAL,
        "pk=ticket.pk, fence=ticket.fence, busy_before__gt=DbNow()",
        "pk=ticket.pk",
        TOGETHER,
    ),
    Mutation(
        "permits: a release together in a transaction locks no ticket",
        SEVERAL,
        "    if connection.in_atomic_block:\n        _assign_after_commit(connection, model, rows[0][0])\n",
        "    if False:\n        _assign_after_commit(connection, model, rows[0][0])\n",
        TOGETHER,
    ),
    Mutation(
        "permits: what was lost before is told",
        SEVERAL,
        'if now.get(pk) != (fence + 1, "")]',
        "if False]",
        TOGETHER,
    ),
    Mutation(
        "permits: a condition belongs to the release",
        STATEMENTS,
        "sql + where.sql, [*params, *where.params]",
        "sql, params",
        TOGETHER,
    ),
    # Semaphores
    Mutation(
        "semaphores: all or none", "leases/free_rows.py", "    if len(pks) > 1:\n", "    if False:\n", SEATS
    ),
    Mutation(
        "semaphores: more than held is not released",
        REGISTRY,
        "if (available := sum(len(hold.leases) for hold in known)) < count:",
        "if not (available := sum(len(hold.leases) for hold in known)):",
        SEATS,
    ),
    Mutation(
        "semaphores: a hold is given back once",
        SEMAPHORE,
        "if not holds.remove(self):",
        "if not holds.remove(self) and False:",
        SEATS,
    ),
    Mutation(
        "semaphores: a thread's own permits first",
        REGISTRY,
        "(hold.is_of_block, not is_of_caller(hold))",
        "hold.is_of_block",
        SEATS,
    ),
    Mutation(
        "semaphores: the end of a block releases what this thread took at its beginning",
        SEMAPHORE,
        "next(filter(is_of_caller, latest_first), latest_first[0] if latest_first else None)",
        "latest_first[0] if latest_first else None",
        SEATS,
    ),
    Mutation(
        "semaphores: those of a block last",
        REGISTRY,
        "(hold.is_of_block, not is_of_caller(hold))",
        "not is_of_caller(hold)",
        SEATS,
    ),
    Mutation(
        "semaphores: a child of a fork holds nothing",
        REGISTRY,
        "holds = per_process(ProcessHolds)",
        "holds = ProcessHolds()",
        ("tests/locks/test_semaphore_processes.py",),
    ),
    Mutation(
        "semaphores: an older grant of the same row",
        PERMITS,
        "if lease.pk in lost or lease is not latest[lease.pk]:",
        "if lease.pk in lost:",
        SEATS,
    ),
    Mutation(
        "semaphores: a row that came back to the process is one permit",
        SEMAPHORE,
        "                lost._lose(verbs.TAKEN)\n",
        "                pass\n",
        SEATS,
    ),
    Mutation(
        "semaphores: more than there are is refused",
        SEMAPHORE,
        "if count < request.count:",
        "if False:",
        SEATS,
    ),
    Mutation(
        "semaphores: those that are held stay in service first",
        RESIZING,
        "(not row.is_held, not row.in_service, row.number)",
        "(not row.in_service, row.number)",
        SEATS,
    ),
    Mutation(
        "semaphores: more permits serve waiters at once",
        RESIZING,
        "        transaction.on_commit(partial(assign_quietly, using, permits.model, [permits.name]), using=using)\n",
        "",
        SEATS,
    ),
    # Everything of one process
    Mutation(
        "release_all: the owners hold nothing after it",
        RELEASING,
        "    registry.forget()  # first",
        "    # first",
        ALL,
    ),
    Mutation("release_all: the process holds nothing after it", REGISTRY, "    holds.forget()\n", "", ALL),
    Mutation(
        "release_all: of one incarnation alone",
        RELEASING,
        "[row for row in candidates if parse_holder(row[2])[0] == incarnation]",
        "candidates",
        ALL,
    ),
    Mutation(
        "free holders: not from who waits for the rest",
        "locks/operator_actions.py",
        ".exclude(holder__in=_collecting(rows))",
        "",
        ALL,
    ),
    Mutation(
        "release_all: what has expired is not taken",
        RELEASING,
        ".held().filter(holder__contains",
        ".filter(holder__contains",
        ALL,
    ),
    # The sweep
    Mutation(
        "unused names: not what somebody waits for",
        SWEEP,
        "return {lines[pool] for",
        "return set() and {lines[pool] for",
        UNUSED_AFTER,
    ),
    Mutation(
        "unused names: of permits all or none",
        SWEEP,
        "if len(pks) == counts[name]}",
        "}",
        UNUSED_AFTER,
    ),
    Mutation(
        "unused names: one of a name that is used keeps all",
        SWEEP,
        "if in_service and micros < -UNUSED_AFTER * 1_000_000:",
        "if in_service:",
        UNUSED_AFTER,
    ),
    Mutation(
        "unused names: it stops when its term is lost",
        SWEEP,
        "            lease.ensure_held()\n        keys",
        "            pass\n        found",
        UNUSED_AFTER,
    ),
    Mutation(
        "unused names: new rows count as used",
        BASE,
        "            row.busy_before = DbNow()",
        "            pass",
        UNUSED_AFTER,
    ),
    Mutation(
        "unused names: who does not wait finds them gone",
        BASE,
        "if _known_until.get(key, 0.0) > monotonic():",
        "if key in _known_until:",
        UNUSED_AFTER,
    ),
)

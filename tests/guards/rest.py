"""Mutations of the REST API: permissions, ownership of leases, and inputs."""

from tests.guards.mutation import Mutation

LEASING, VIEW, OPERATING, MAY, GRANTS, READ, WAITS, NAMES, LIMITS, REMOTE = (
    *(
        f"rest/{name}.py"
        for name in (
            "leases",
            "view",
            "operations",
            "access",
            "grants",
            "body",
            "wait_slots",
            "holder_names",
            "limits",
        )
    ),
    "rest/grants.py",
)
LIMITED = ("tests/rest/test_limits.py",)
ACCESS, LEASES = ("tests/rest/test_access.py",), ("tests/rest/test_leases.py",)
REPEATED, INPUTS = ("tests/rest/test_request_id.py",), ("tests/rest/test_inputs.py",)
PROCESSES, WAITING = ("tests/rest/test_processes.py",), ("tests/rest/test_wait_slots.py",)

REST = (
    Mutation("rest: only authenticated callers", VIEW, "(IsAuthenticated,)", "()", ACCESS),
    Mutation(
        "rest: permissions are checked",
        MAY,
        "if not has_permission(request, action, model):",
        "if False:",
        ACCESS,
    ),
    Mutation(
        "rest: the permission of the holder, too",
        LEASING,
        '        require(request, "lease", model)\n',
        "",
        ACCESS,
    ),
    Mutation(
        "rest: quarantine needs its own permission",
        LEASING,
        '        require(self.request, "quarantine", lease.model)\n',
        "",
        ACCESS,
    ),
    Mutation(
        "rest: the history has the caller",
        LEASING,
        "wanted = dataclasses.replace(wanted, terms=dataclasses.replace(wanted.terms, actor=caller(request)))",
        "pass",
        LEASES,
    ),
    Mutation(
        "rest: an operation needs its own permission",
        OPERATING,
        "        require(request, operation.permission, model)\n",
        "",
        ACCESS,
    ),
    Mutation(
        "rest: a selector cannot have the name of an option",
        LEASING,
        "if name in RESERVED_NAMES:",
        "if False:",
        LEASES,
    ),
    Mutation("rest: a holder's name cannot imitate a request", NAMES, 'if "#" in holder:', "if False:", LEASES),
    Mutation(
        "rest: a request belongs to its user",
        NAMES,
        "key = str(request.user.pk)",
        'key = "x"',
        REPEATED,
    ),
    Mutation(
        "rest: a repeated request must have the same parameters",
        GRANTS,
        "        refuse_other(HolderName.read(holder), HolderName.read(name))\n",
        "",
        REPEATED,
    ),
    Mutation(
        "rest: a repeated request gets a new fence",
        GRANTS,
        "before.hand_over(name)",
        "fence",
        REPEATED,
    ),
    Mutation(
        "rest: an expired lease is not released",
        REMOTE,
        "if retrying(self._connection, row.expired().exists):",
        "if False:",
        LEASES,
    ),
    Mutation(
        "rest: errors name only pools that the user may use",
        MAY,
        "[model for model in resource_models() if has_permission(request, action, model)]",
        "resource_models()",
        ACCESS,
    ),
    Mutation("rest: a detached lease is not renewed here", REMOTE, "    keeper.remove(lease)\n", "", LEASES),
    Mutation(
        "rest: a waiter's lease is valid for its whole ttl",
        GRANTS,
        "if lease._trust.valid_for < wanted.terms.ttl:",
        "if False:",
        LEASES,
    ),
    Mutation(
        "rest: no lease is detached while the process exits",
        REMOTE,
        "if shutdown.has_begun():",
        "if False:",
        PROCESSES,
    ),
    Mutation(
        "rest: max_hold counts from the acquisition",
        REMOTE,
        "monotonic() - max(0.0, time.time() - self.granted_at)",
        "monotonic()",
        LEASES,
    ),
    Mutation(
        "rest: a token is signed",
        REMOTE,
        "cls(*signing.loads(text, salt=SALT))",
        'cls(*signing.JSONSerializer().loads(signing.b64_decode(text.partition(":")[0].encode())))',
        LEASES,
    ),
    Mutation(
        "rest: a token may be as long as names are",
        REMOTE,
        "MAX_TOKEN_LENGTH = 10_000",
        "MAX_TOKEN_LENGTH = 2_000",
        LEASES,
    ),
    Mutation(
        "rest: no take-over in a transaction",
        GRANTS,
        "    refuse_open_transaction(connection, is_allowed=wanted.allow_in_transaction)\n",
        "",
        REPEATED,
    ),
    Mutation(
        "rest: a lone surrogate is refused",
        READ,
        "        json.dumps(data, ensure_ascii=False).encode()\n",
        "",
        INPUTS,
    ),
    Mutation(
        "rest: a chunked body is not ignored",
        READ,
        "    refuse_without_length(request._request)\n",
        "",
        INPUTS,
    ),
    Mutation("rest: the limit of leases per user", LIMITS, "+ (not with_this) > self.most", "< 0", LIMITED),
    Mutation(
        "rest: the limit of leases for simultaneous requests",
        GRANTS,
        "        quota.refuse_if_spent(source, with_this=True)\n",
        "        pass\n",
        LIMITED,
    ),
    Mutation(
        "rest: a user name with NUL is refused",
        VIEW,
        'if "NUL" not in str(error):',
        "if True:",
        INPUTS,
        "postgresql",
    ),
    Mutation("rest: the limit of waiting requests", WAITS, "self._used < most", "True", WAITING),
    Mutation(
        "rest: no request waits in a process with one thread",
        WAITS,
        'bool(request.META.get("wsgi.multithread", True))',
        "True",
        WAITING,
    ),
    Mutation("rest: JSON is UTF-8", VIEW, 'request.encoding = "utf-8"', "pass", INPUTS),
    Mutation(
        "rest: error reports have no secrets",
        VIEW,
        "@sensitive_variables()",
        '@sensitive_variables("nothing")',
        ("tests/canary/test_rest.py",),
    ),
    Mutation("rest: no cache keeps a secret", VIEW, '= "no-store"', '= "public"', LEASES),
)

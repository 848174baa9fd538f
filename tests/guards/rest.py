"""The guards of the REST API: who may call, whose lease is whose, and what is left alone."""

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
    "leases/remote.py",
)
LIMITED = ("tests/rest/test_limits.py",)
ACCESS, LEASES = ("tests/rest/test_access.py",), ("tests/rest/test_leases.py",)
REPEATED, INPUTS = ("tests/rest/test_request_id.py",), ("tests/rest/test_inputs.py",)
PROCESSES, WAITING = ("tests/rest/test_processes.py",), ("tests/rest/test_wait_slots.py",)

REST = (
    Mutation("rest: only who is logged in", VIEW, "(IsAuthenticated,)", "()", ACCESS),
    Mutation(
        "rest: permissions are asked for",
        MAY,
        "if not has_permission(request, action, model):",
        "if False:",
        ACCESS,
    ),
    Mutation(
        "rest: the holder's permission, too",
        LEASING,
        '        require(request, "lease", model)\n',
        "",
        ACCESS,
    ),
    Mutation(
        "rest: to quarantine takes more than to lease",
        LEASING,
        '        require(self.request, "quarantine", lease.model)\n',
        "",
        ACCESS,
    ),
    Mutation(
        "rest: the history says who leased",
        LEASING,
        "wanted = dataclasses.replace(wanted, terms=dataclasses.replace(wanted.terms, actor=caller(request)))",
        "pass",
        LEASES,
    ),
    Mutation(
        "rest: an operation's own permission",
        OPERATING,
        "        require(request, operation.permission, model)\n",
        "",
        ACCESS,
    ),
    Mutation("rest: a selector is no option", LEASING, "if name in RESERVED_NAMES:", "if False:", LEASES),
    Mutation("rest: no name is another's request", NAMES, 'if "#" in holder:', "if False:", LEASES),
    Mutation(
        "rest: a request is its user's",
        NAMES,
        "key = str(request.user.pk)",
        'key = "x"',
        REPEATED,
    ),
    Mutation(
        "rest: the same request has the same parameters",
        GRANTS,
        "        refuse_other(HolderName.read(holder), HolderName.read(name))\n",
        "",
        REPEATED,
    ),
    Mutation(
        "rest: sent again it gets a fence that no other server knows",
        GRANTS,
        "before.hand_over(name)",
        "fence",
        REPEATED,
    ),
    Mutation(
        "rest: what has run out is not given back",
        REMOTE,
        "if retrying(self._connection, mine.expired().exists):",
        "if False:",
        LEASES,
    ),
    Mutation(
        "rest: nobody is told of pools that he may not use",
        MAY,
        " for one in resource_models() if has_permission(request, action, one))",
        " for one in resource_models())",
        ACCESS,
    ),
    Mutation("rest: what is detached is not kept here", REMOTE, "    keeper.remove(lease)\n", "", LEASES),
    Mutation(
        "rest: what a waiter gets lasts for its whole ttl",
        GRANTS,
        "if lease.trust.valid_for < wanted.terms.ttl:",
        "if False:",
        LEASES,
    ),
    Mutation(
        "rest: nothing is detached that the end of the process releases",
        REMOTE,
        "if shutdown.has_begun():",
        "if False:",
        PROCESSES,
    ),
    Mutation(
        "rest: max_hold counts from the grant",
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
        "MOST_LETTERS = 10_000",
        "MOST_LETTERS = 2_000",
        LEASES,
    ),
    Mutation(
        "rest: nothing is granted again in a transaction",
        GRANTS,
        "    refuse_open_transaction(connection, wanted)\n",
        "",
        REPEATED,
    ),
    Mutation(
        "rest: half a surrogate pair is no text",
        READ,
        "        json.dumps(found, ensure_ascii=False).encode()\n",
        "",
        INPUTS,
    ),
    Mutation(
        "rest: a body in chunks is not taken for none",
        READ,
        "    refuse_without_length(request._request)\n",
        "",
        INPUTS,
    ),
    Mutation(
        "rest: no user has more leases than allowed", LIMITS, "+ (not with_this) > self.most", "< 0", LIMITED
    ),
    Mutation(
        "rest: nor by requests at the same moment",
        GRANTS,
        "        quota.refuse_if_spent(source, with_this=True)\n",
        "        pass\n",
        LIMITED,
    ),
    Mutation(
        "rest: a user name with NUL is nobody's",
        VIEW,
        'if "NUL" not in str(error):',
        "if True:",
        INPUTS,
        "postgresql",
    ),
    Mutation("rest: only so many requests wait", WAITS, "self._taken < most", "True", WAITING),
    Mutation(
        "rest: with one thread nobody waits",
        WAITS,
        'bool(request.META.get("wsgi.multithread", True))',
        "True",
        WAITING,
    ),
    Mutation("rest: JSON is UTF-8", VIEW, 'request.encoding = "utf-8"', "pass", INPUTS),
    Mutation(
        "rest: no report of an error has a secret",
        VIEW,
        "@sensitive_variables()",
        '@sensitive_variables("nothing")',
        ("tests/canary/test_rest.py",),
    ),
    Mutation("rest: no cache keeps a secret", VIEW, '= "no-store"', '= "public"', LEASES),
)

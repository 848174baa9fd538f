"""The guards of the validity checks."""

from tests.guards.mutation import CHECKS, Mutation

CHECKING = (
    Mutation(
        "a check takes what was parked anew",
        "resources/checking/lease.py",
        "parked.filter(pk=candidate.pk, fence=candidate.fence)",
        "parked.filter(pk=candidate.pk)",
        CHECKS,
    ),
    Mutation(
        "a check writes to a successor's row",
        "resources/checking/lease.py",
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        CHECKS,
    ),
    Mutation(
        "a check that cannot tell ends a quarantine",
        "resources/checking/lease.py",
        "if not self.candidate.is_parked:",
        "if True:",
        CHECKS,
    ),
    Mutation(
        "a check shortens what an operator decided",
        "resources/checking/check.py",
        " and not lease.candidate.is_theirs:",
        ":",
        CHECKS,
    ),
    Mutation(
        "a broken checker condemns the pool",
        "resources/checking/check.py",
        "        if not why:\n",
        "        if True:\n",
        CHECKS,
    ),
    Mutation(
        "a check is sent inside",
        "resources/checking/guard.py",
        "if not is_public(plain):",
        "if False:",
        CHECKS,
    ),
    Mutation(
        "a proxy's name is looked up again",
        "resources/checking/route.py",
        "else (address, self.port))",
        "else (self.host, self.port))",
        CHECKS,
    ),
    Mutation(
        "a proxy that trickles is waited for",
        "resources/checking/lifeline.py",
        "self._timer.start()",
        "pass",
        CHECKS,
    ),
    Mutation(
        "what was cut off looks whole",
        "resources/checking/request.py",
        "    if lifeline.is_cut:  # what",
        "    if False:  # what",
        CHECKS,
    ),
    Mutation(
        "a proxy over TLS is not verified",
        "resources/checking/request.py",
        '"https://" if conn.scheme == "https" else url',
        "url",
        CHECKS,
    ),
    Mutation(
        "a check looks at what is held",
        "resources/checking/due.py",
        "_read(rows.available(), is_parked=False)",
        "_read(rows, is_parked=False)",
        ("tests/resources/checking",),
    ),
    Mutation(
        "a check follows redirects",
        "resources/checking/request.py",
        "allow_redirects=False",
        "allow_redirects=True",
        ("tests/resources/checking",),
    ),
    Mutation(
        "a target inside is asked for",
        "resources/checking/proxies.py",
        "except NotPublic as fault:\n            raise CheckerBroken",
        "except NotPublic as fault:\n            return\n            raise CheckerBroken",
        ("tests/resources/checking",),
    ),
    Mutation(
        "a check tells of an end that is not one",
        "resources/checking/lease.py",
        "    if candidate.holder and grant.fence == candidate.fence + 1:",
        "    if candidate.holder:",
        CHECKS,
    ),
)

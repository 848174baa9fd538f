"""The guards of the health checks."""

from tests.guards.mutation import CHECKS, Mutation

HEALTH_CHECKS = (
    Mutation(
        "a check takes what was parked anew",
        "health_checks/lease.py",
        "parked.filter(pk=candidate.pk, fence=candidate.fence)",
        "parked.filter(pk=candidate.pk)",
        CHECKS,
    ),
    Mutation(
        "a check writes to a successor's row",
        "health_checks/lease.py",
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        CHECKS,
    ),
    Mutation(
        "a check goes before those who stand in line",
        "health_checks/lease.py",
        "_given_to_somebody(connection, model, candidate.pk)",
        "False",
        CHECKS,
    ),
    Mutation(
        "a check that cannot tell ends a quarantine",
        "health_checks/lease.py",
        "if not self.candidate.is_quarantined:",
        "if True:",
        CHECKS,
    ),
    Mutation(
        "a check shortens what an operator decided",
        "health_checks/check.py",
        " and not lease.candidate.is_quarantined_by_others:",
        ":",
        CHECKS,
    ),
    Mutation(
        "a broken checker condemns the pool",
        "health_checks/check.py",
        "        if not why:\n",
        "        if True:\n",
        CHECKS,
    ),
    Mutation(
        "a check is sent inside",
        "proxies/health_check/address_filter.py",
        "if is_public(plain) or self",
        "if True or self",
        CHECKS,
    ),
    Mutation(
        "a proxy's name is looked up again",
        "proxies/health_check/route.py",
        "connect_tcp(address, self._port",
        "connect_tcp(self._host, self._port",
        CHECKS,
    ),
    Mutation(
        "a proxy that trickles is waited for",
        "proxies/health_check/deadline.py",
        "self._timer.start()",
        "pass",
        CHECKS,
    ),
    Mutation(
        "what was cut off looks whole",
        "proxies/health_check/request.py",
        "    if deadline.is_over:  # what",
        "    if False:  # what",
        CHECKS,
    ),
    Mutation(
        "a proxy over TLS is not verified",
        "proxies/health_check/route.py",
        "proxy_ssl_context=tls if",
        "proxy_ssl_context=ssl._create_unverified_context() if",
        CHECKS,
    ),
    Mutation(
        "a check looks at what is held",
        "health_checks/candidates.py",
        "_read(rows.available(), is_quarantined=False)",
        "_read(rows, is_quarantined=False)",
        ("tests/health_checks",),
    ),
    Mutation(
        "a target inside is asked for",
        "proxies/health_check/checker.py",
        "except NotPublic as fault:\n            raise CheckerBroken",
        "except NotPublic as fault:\n            return\n            raise CheckerBroken",
        CHECKS,
    ),
    Mutation(
        "a check tells of an end that is not one",
        "health_checks/lease.py",
        "    if candidate.holder and grant.fence == candidate.fence + 1:",
        "    if candidate.holder:",
        CHECKS,
    ),
)

"""The guards of health checks."""

from tests.guards.mutation import CHECKS, Mutation

HEALTH_CHECKS = (
    Mutation(
        "a check leases a resource that was quarantined again",
        "health_checks/lease.py",
        "quarantined.filter(pk=candidate.pk, fence=candidate.fence)",
        "quarantined.filter(pk=candidate.pk)",
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
        "a check leases a resource that is due to a waiter",
        "health_checks/lease.py",
        "_given_to_waiter(connection, model, candidate.pk)",
        "False",
        CHECKS,
    ),
    Mutation(
        "a check with an unknown verdict ends a quarantine",
        "health_checks/lease.py",
        "if not self.candidate.is_quarantined:",
        "if True:",
        CHECKS,
    ),
    Mutation(
        "a check shortens a quarantine by an operator",
        "health_checks/check.py",
        " and not lease.candidate.is_quarantined_by_others:",
        ":",
        CHECKS,
    ),
    Mutation(
        "a broken checker quarantines the pool",
        "health_checks/check.py",
        "        if not why:\n",
        "        if True:\n",
        CHECKS,
    ),
    Mutation(
        "a check connects to the own network",
        "proxies/health_check/address_filter.py",
        "if is_public(without_zone) or self",
        "if True or self",
        CHECKS,
    ),
    Mutation(
        "the name of a proxy is resolved again",
        "proxies/health_check/route.py",
        "connect_tcp(address, self._port",
        "connect_tcp(self._host, self._port",
        CHECKS,
    ),
    Mutation(
        "a check waits for a trickling proxy",
        "proxies/health_check/route.py",
        "self._timer.start()",
        "pass",
        CHECKS,
    ),
    Mutation(
        "a shut-down connection looks like a complete answer",
        "proxies/health_check/request.py",
        "    if deadline.is_exceeded:  # a shut",
        "    if False:  # a shut",
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
        "a check checks held resources",
        "health_checks/lease.py",
        "_read(rows.available(), is_quarantined=False)",
        "_read(rows, is_quarantined=False)",
        ("tests/health_checks",),
    ),
    Mutation(
        "a target in the own network is allowed",
        "proxies/health_check/checker.py",
        "except NotPublic as fault:\n            raise CheckerBroken",
        "except NotPublic as fault:\n            return\n            raise CheckerBroken",
        CHECKS,
    ),
    Mutation(
        "a check emits the end of a lease that was released",
        "health_checks/lease.py",
        "    if candidate.holder and grant.fence == candidate.fence + 1:",
        "    if candidate.holder:",
        CHECKS,
    ),
)

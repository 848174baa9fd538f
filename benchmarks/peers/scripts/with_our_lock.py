"""Our Lock, with default settings; or "raw": the two UPDATEs that it cannot do without, on Django's connection."""

import os

import django
from lock_peer import Make, Pair, main

CLAIM = (
    "UPDATE resourcepool_lock SET busy_before = {later}, fence = fence + 1, holder = %s"
    " WHERE name = %s AND busy_before <= {now}"
)
RELEASE = (
    "UPDATE resourcepool_lock SET busy_before = {now}, fence = fence + 1, holder = ''"
    " WHERE name = %s AND holder = %s"
)


def ours() -> Make:
    from django.conf import settings
    from django.db import connection

    from resourcepool.locks import Lock

    if hints := os.environ.get("BENCH_HINTS"):
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": hints}
    connection.close()  # the parent's

    def make(name: str) -> Pair:
        lock = Lock(name)
        return lock.acquire, lock.release

    return make


def raw() -> Make:
    from django.db import connection

    from resourcepool.db import dialect
    from resourcepool.locks.models import Lock as LockRow

    connection.close()
    db_dialect = dialect.of(connection)
    words = {"now": db_dialect.now, "later": db_dialect.later.replace("%s", "30000000")}

    def make(name: str) -> Pair:
        LockRow.objects.get_or_create(pk=name)
        claim, release = CLAIM.format(**words), RELEASE.format(**words)

        def send(sql: str, params: list[str]) -> None:
            with connection.cursor() as cursor:
                cursor.execute(sql, params)

        return (lambda: send(claim, ["me", name])), (lambda: send(release, [name, "me"]))

    return make


if __name__ == "__main__":
    django.setup()
    if os.environ.get("BENCH_RAW"):
        main(raw, ("own",))
    else:
        main(ours)

"""``python -m tests.servers mysql`` (or another kind), then the server's own options: a server for hand work."""

import contextlib
import signal
import sys

from tests.processes import terminable
from tests.servers import SERVERS, ServerFailed, ServerMissing


def main(arguments: list[str]) -> None:
    kind = SERVERS.get(arguments[0]) if arguments else None
    if kind is None:
        raise SystemExit(f"usage: python -m tests.servers {'|'.join(SERVERS)} [option of the server ...]")
    try:
        with contextlib.suppress(KeyboardInterrupt), terminable(), kind(options=arguments[1:]) as server:
            print(server.url, flush=True)
            print(f"{server.name} keeps its data in {server.folder}; Ctrl-C ends it.", file=sys.stderr)
            signal.pause()
    except (ServerMissing, ServerFailed) as problem:
        raise SystemExit(str(problem)) from None


main(sys.argv[1:])

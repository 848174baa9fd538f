"""A child process of a test: sets Django up, then calls one function with JSON arguments.

Started by the fixture ``spawn`` as ``python -m tests.child package.module:function '[1, "a"]'``, or by ``tests.forks``.
"""

import faulthandler
import importlib
import json
import signal
import sys

import django


def main(target: str, arguments: str) -> None:
    django.setup()
    call(target, arguments)


def call(target: str, arguments: str) -> None:
    # Each line at once, and not each word of it: what threads log would come between them.
    sys.stdout.reconfigure(line_buffering=True, write_through=False)
    faulthandler.register(signal.SIGUSR1)  # kill -USR1 shows where a child hangs
    module, name = target.split(":")
    getattr(importlib.import_module(module), name)(*json.loads(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The place of temporary test files: in memory if there is room, so that tests do not wait for a disk.

A commit waits for the disk, and thousands of tests commit. What a server or SQLite does is the same; only benchmarks
and the proofs that have targets of their own use the disk.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30  # bytes; a whole run needs a quarter of it at a time


@contextlib.contextmanager
def files_in_memory() -> Iterator[None]:
    """Have this process and what it starts make their temporary files in memory, unless TMPDIR says where."""
    if "TMPDIR" in os.environ or not has_room():
        yield
        return
    folder = tempfile.mkdtemp(prefix="resourcepool-tests-", dir=MEMORY)
    Path(folder).chmod(0o711)  # servers run as users of their own
    os.environ["TMPDIR"], tempfile.tempdir = folder, folder
    try:
        yield
    finally:
        del os.environ["TMPDIR"]
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)


def has_room() -> bool:
    """Whether there is such a folder, and as much memory as a run may need."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return False
    found = [
        line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:")
    ]
    return bool(found) and int(found[0].split()[1]) * 1024 >= ROOM

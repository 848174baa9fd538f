"""``make lock``: renews requirements.txt, with every installed version and the hashes of its files.

It asks the package index, by uv; versions that still fit stay, unless it is told ``--upgrade``.
"""

import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

ROOT = (
    Path(__file__).resolve().parent.parent
)  # no import of ours: this must run where nothing is installed but uv
LOCK = ROOT / "requirements.txt"

BUILDS_US = ("hatchling", "editables")  # what installs the package from its folder
BUILDS_OTHERS = ("setuptools",)  # mysqlclient has no file that is ready for use
EXTRAS = ("postgres", "checks", "celery", "rest", "openapi", "redis", "bench", "demo", "docs", "dev", "mysql")
TO_BE_BUILT = ("mysqlclient",)

HEAD = """\
# Every version that was tested together, for Python 3.11 to 3.13, with the hashes of its files; written by `make lock`.
# In an environment of its own (mysqlclient needs a C compiler and the MariaDB or MySQL headers):
#     pip install --require-hashes -r requirements.txt
#     pip install --no-deps --no-build-isolation -e .
"""
TITLES = {
    "demo": "make demo, and what installs the package itself",
    "tests": "what make test needs besides",
    "mariadb": "built on the spot",
}

Lock = dict[str, str]
"""{name of a package: its lines}."""


def main(options: Sequence[str]) -> None:
    """Write the lock."""
    everything = compiled(EXTRAS, (*BUILDS_US, *BUILDS_OTHERS), LOCK.read_text(), options)
    for_demo = compiled(("demo",), BUILDS_US, "\n".join(everything.values()), ())
    LOCK.write_text(composed(everything, for_demo))
    print(f"{LOCK.name}: {len(everything)} packages")


def compiled(extras: Collection[str], more: Collection[str], known: str, options: Sequence[str]) -> Lock:
    """Return what these extras and packages bring with them, in the versions of the lock ``known`` where they fit."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", "-", "--quiet"]
    command += ["--universal", "--fork-strategy", "fewest", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--output-file", ".venv/lock.txt", *options]
    output = ROOT / ".venv" / "lock.txt"
    output.write_text(known)
    try:
        chosen = [f"--extra={extra}" for extra in extras]
        subprocess.run([*command, *chosen], cwd=ROOT, input="\n".join(more), text=True, check=True)
        return read(output.read_text())
    finally:
        output.unlink()


def read(text: str) -> Lock:
    """Return the packages of a lock."""
    entries = re.findall(
        r"^[^\s#].*\n(?:[ \t]+.*\n?)*", text if text.endswith("\n") else f"{text}\n", re.MULTILINE
    )
    return {entry.partition("==")[0]: entry.rstrip() for entry in entries}


def composed(everything: Mapping[str, str], for_demo: Collection[str]) -> str:
    """Return the lock in sections, of which ``.ci/bootstrap`` installs those that are needed."""
    sections: dict[str, list[str]] = {name: [] for name in TITLES}
    for name, entry in everything.items():
        section = "mariadb" if name in TO_BE_BUILT else "demo" if name in for_demo else "tests"
        sections[section].append(entry)
    parts = [f"## {name}\n# {TITLES[name]}\n" + "\n".join(entries) for name, entries in sections.items()]
    return "\n\n".join([HEAD.rstrip(), *parts]) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])

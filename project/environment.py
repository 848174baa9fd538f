"""Reads settings from outside: environment variables, and secrets stored in a folder between runs."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

PRIVATE_MODE = 0o700  # of a folder: only its owner has access


def env_list(name: str, default: str = "") -> list[str]:
    """Return the comma-separated values of an environment variable, without blanks."""
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]


def env_flag(name: str) -> bool:
    """Return an environment variable as a boolean; raises ImproperlyConfigured for other values."""
    value = os.environ.get(name, "").strip().lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("", "0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is not allowed: 1 or 0")


def make_private(folder: Path) -> Path:
    """Return ``folder``; if it exists, restrict it to its owner."""
    with contextlib.suppress(OSError):  # it does not exist yet, or belongs to another user
        if folder.stat().st_mode & 0o077:
            folder.chmod(PRIVATE_MODE)
    return folder


def stored_secret(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in the file ``path``; the first call creates it, readable by its owner only.

    Processes that start at the same moment all return the same secret.
    """
    if not path.exists():
        path.parent.mkdir(PRIVATE_MODE, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(make())
        try:
            os.link(draft, path)  # unlike a rename, it never replaces the file of another process
        except FileExistsError:
            pass
        finally:
            Path(draft).unlink()
    return path.read_text().strip()

"""Encryption with the keys in RESOURCEPOOL["SECRET_KEYS"]: the first one encrypts, every one decrypts.

The cipher is ``MultiFernet`` of the package cryptography, with keys of its own for each purpose: HMAC-SHA256 of the
purpose under each configured key. So Fernet's own authentication refuses a secret that was copied from another row,
column or model, as it refuses one of another key. There is no context inside of a secret that a caller could forget to
compare, and nothing to design besides the derivation: HMAC-SHA256 is a pseudorandom function, so keys of different
purposes are independent. The purpose is encoded as JSON, in which different ones never look alike.
"""

import base64
import hmac
import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.views.decorators.debug import sensitive_variables

from resourcepool.conf import setting
from resourcepool.events import Sentence
from resourcepool.exceptions import SecretUnreadable
from resourcepool.translation import gettext_noop as _

Purpose = tuple[str, ...]
"""The use of a secret, such as ("column", "resourcepool.Proxy.password", "http", "a.example", "80", "joe")."""

ENCODING = ("utf-8", "surrogatepass")  # an error about half a character would show the whole secret

_COMMAND = 'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'


class EncryptedSecret:
    """A secret as stored in the database; ``repr`` and ``str`` do not show it."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __repr__(self) -> str:
        return "<sealed>"

    @sensitive_variables()
    def open(self, *purposes: Purpose) -> str:
        """Decrypt the secret, which was encrypted for one of these; raises SecretUnreadable if no key fits."""
        from cryptography.fernet import InvalidToken

        for purpose in purposes:
            try:
                return str(_cipher(purpose).decrypt(self.token.encode()), *ENCODING)
            except InvalidToken:
                continue
        text = _(
            "no key in RESOURCEPOOL['SECRET_KEYS'] decrypts this secret: a key was removed, or the secret was copied"
            " from another row"
        )
        raise SecretUnreadable(Sentence(text))

    @sensitive_variables()
    def rebound_to(self, purpose: Purpose, *others: Purpose) -> "EncryptedSecret":
        """Return the secret encrypted for ``purpose``, if it was for one of ``others``; otherwise unchanged."""
        try:
            self.open(purpose)
        except SecretUnreadable:
            try:
                return encrypt(self.open(*others), purpose)
            except SecretUnreadable:
                pass  # the key is lost, or the secret belongs to another row: reading it raises
        return self


@sensitive_variables()
def encrypt(secret: str, purpose: Purpose) -> EncryptedSecret:
    """Encrypt ``secret`` with the first key; raises SecretUnreadable if there is no key."""
    return EncryptedSecret(_cipher(purpose).encrypt(secret.encode(*ENCODING)).decode())


@sensitive_variables()  # or an error report would show the keys
def _cipher(purpose: Purpose) -> Any:
    # Imported here, because it is slow and unused in projects without secrets.
    from cryptography.fernet import Fernet, MultiFernet

    keys = setting("SECRET_KEYS")
    if not isinstance(keys, list | tuple) or not keys:
        text = _(
            "there is no key for secrets: add one to the list RESOURCEPOOL['SECRET_KEYS']; create it with: %(command)s"
        )
        raise SecretUnreadable(Sentence(text, command=_COMMAND))
    try:
        for key in keys:
            Fernet(key)
        return MultiFernet([Fernet(_derived(key, purpose)) for key in keys])
    except (ValueError, TypeError):
        text = _(
            "one of the %(count)s keys in RESOURCEPOOL['SECRET_KEYS'] is not a Fernet key: replace it;"
            " create one with: %(command)s"
        )
        raise SecretUnreadable(Sentence(text, count=len(keys), command=_COMMAND)) from None


@sensitive_variables()
def _derived(key: str | bytes, purpose: Purpose) -> bytes:
    digest = hmac.digest(base64.urlsafe_b64decode(key), json.dumps(purpose).encode(), "sha256")
    return base64.urlsafe_b64encode(digest)


@contextmanager
def clear_frame_variables() -> Iterator[None]:
    """Clear the local variables in the traceback of an error that leaves the block; files and lines stay."""
    try:
        yield
    except BaseException as error:
        _forget(error)
        raise


def _forget(error: BaseException | None) -> None:
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__

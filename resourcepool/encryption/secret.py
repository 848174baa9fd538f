"""Encryption with the keys in RESOURCEPOOL["SECRET_KEYS"]: the first one encrypts, every one decrypts.

Each purpose has keys of its own, derived from these: a secret sealed for one purpose cannot be opened for another.
"""

import base64
import hmac
import json
from typing import Any

from django.utils.translation import gettext_noop as _
from django.views.decorators.debug import sensitive_variables

from resourcepool.conf import setting
from resourcepool.events import Sentence
from resourcepool.exceptions import SecretUnreadable

Purpose = tuple[str, ...]
"""What a secret is for, such as ("column", "resourcepool.Proxy.password", "http", "a.example", "80", "joe")."""

ANY_PURPOSE: Purpose = ()
"""Sealed with the keys themselves, as everything was before there were purposes. Nothing is any more."""

ENCODING = ("utf-8", "surrogatepass")  # an error about half a character would show the whole secret

_COMMAND = 'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'


class EncryptedSecret:
    """A secret as it lies in the database; its text is nowhere in ``repr`` or ``str``."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __repr__(self) -> str:
        return "<sealed>"

    @sensitive_variables()
    def open(self, *purposes: Purpose) -> str:
        """Return the secret, which was sealed for one of these; raises SecretUnreadable when none of the keys fits."""
        from cryptography.fernet import InvalidToken

        for purpose in purposes:
            try:
                return str(_cipher(purpose).decrypt(self.token.encode()), *ENCODING)
            except InvalidToken:
                continue
        text = _(
            "none of the keys in RESOURCEPOOL['SECRET_KEYS'] decrypts this secret: was a key removed, or was it"
            " stored for another row?"
        )
        raise SecretUnreadable(Sentence(text))

    @sensitive_variables()
    def rebound_to(self, purpose: Purpose, *others: Purpose) -> "EncryptedSecret":
        """Return it sealed for ``purpose`` if it was for one of the others; itself if it is so, or cannot be opened."""
        try:
            self.open(purpose)
        except SecretUnreadable:
            try:
                return encrypt(self.open(*others), purpose)
            except SecretUnreadable:
                pass  # the key is lost, or it belongs to another row: reading it raises
        return self


@sensitive_variables()
def encrypt(secret: str, purpose: Purpose) -> EncryptedSecret:
    """Encrypt ``secret`` with the first key; raises SecretUnreadable when there is none."""
    return EncryptedSecret(_cipher(purpose).encrypt(secret.encode(*ENCODING)).decode())


@sensitive_variables()  # or an error report would show the keys
def _cipher(purpose: Purpose) -> Any:
    # Slow to import, and projects without secrets never need it.
    from cryptography.fernet import Fernet, MultiFernet

    keys = setting("SECRET_KEYS")
    if not isinstance(keys, list | tuple) or not keys:
        text = _(
            "there is no key for secrets: put a key first in the list RESOURCEPOOL['SECRET_KEYS'];"
            " make one with: %(command)s"
        )
        raise SecretUnreadable(Sentence(text, command=_COMMAND))
    try:
        ciphers = [Fernet(key) for key in keys]
    except (ValueError, TypeError):
        text = _(
            "one of the %(count)s keys for secrets is not a Fernet key: put a key first in the list"
            " RESOURCEPOOL['SECRET_KEYS']; make one with: %(command)s"
        )
        raise SecretUnreadable(Sentence(text, count=len(keys), command=_COMMAND)) from None
    return MultiFernet([Fernet(_derived(key, purpose)) for key in keys] if purpose else ciphers)


@sensitive_variables()
def _derived(key: str | bytes, purpose: Purpose) -> bytes:
    # As JSON, because it is one text for one purpose, whatever stands in its parts.
    said = json.dumps(purpose).encode()
    return base64.urlsafe_b64encode(hmac.digest(base64.urlsafe_b64decode(key), said, "sha256"))

"""What is encrypted with the keys in RESOURCEPOOL["SECRET_KEYS"]: the first one encrypts, every one decrypts."""

from typing import Any

from django.views.decorators.debug import sensitive_variables

from resourcepool.conf import setting
from resourcepool.exceptions import SecretUnreadable

_HINT = (
    "put a key first in the list RESOURCEPOOL['SECRET_KEYS']; make one with: "
    'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)


class Sealed:
    """A secret as it lies in the database; its text is nowhere in ``repr`` or ``str``."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __repr__(self) -> str:
        return "<sealed>"

    @sensitive_variables()
    def open(self) -> str:
        """Return the secret; raises SecretUnreadable when none of the keys fits."""
        from cryptography.fernet import InvalidToken

        try:
            return str(_cipher().decrypt(self.token.encode()), "utf-8")
        except InvalidToken:
            raise SecretUnreadable(
                "none of the keys in RESOURCEPOOL['SECRET_KEYS'] decrypts this secret: was a key removed?"
            ) from None


@sensitive_variables()
def seal(secret: str) -> Sealed:
    """Encrypt ``secret`` with the first key; raises SecretUnreadable when there is none."""
    return Sealed(_cipher().encrypt(secret.encode()).decode())


@sensitive_variables()  # or an error report would show the keys
def _cipher() -> Any:
    # Slow to import, and projects without secrets never need it.
    from cryptography.fernet import Fernet, MultiFernet

    keys = setting("SECRET_KEYS")
    if not isinstance(keys, list | tuple) or not keys:
        raise SecretUnreadable(f"there is no key for secrets: {_HINT}")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except (ValueError, TypeError):
        raise SecretUnreadable(
            f"one of the {len(keys)} keys for secrets is not a Fernet key: {_HINT}"
        ) from None

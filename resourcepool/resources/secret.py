"""Secrets at rest: a text field encrypted with the keys in RESOURCEPOOL["SECRET_KEYS"].

The first key encrypts, every key decrypts, so a key is replaced by putting the new one in front and running
``manage.py resourcepool_rotate_secrets``. A value is encrypted when it is set, and
decrypted when it is read, not when its row is loaded.
"""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.query_utils import DeferredAttribute
from django.views.decorators.debug import sensitive_variables

from resourcepool.conf import setting
from resourcepool.exceptions import SecretUnreadable

PREFIX = "sealed:"

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


class _OpensWhenRead(DeferredAttribute):
    @sensitive_variables()
    def __get__(self, instance: Any, cls: Any = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__.get(self.field.attname, self)
        value = super().__get__(instance, cls) if value is self else value
        return value.open() if isinstance(value, Sealed) else value

    @sensitive_variables()
    def __set__(self, instance: Any, value: Any) -> None:
        # At once, so that no instance carries the text about, and no error report on its way to the database does.
        instance.__dict__[self.field.attname] = seal(value) if isinstance(value, str) and value else value


if TYPE_CHECKING:
    TextField = models.TextField[Any, Any]
else:
    TextField = models.TextField


class EncryptedTextField(TextField):
    """Text that is encrypted in the database. Cannot be searched for, ordered by or selected on."""

    descriptor_class = _OpensWhenRead

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        return self.to_python(value)

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and value.startswith(PREFIX):
            return Sealed(value.removeprefix(PREFIX))
        return value

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        return model_instance.__dict__.get(self.attname)  # as it is: reading the attribute would decrypt it

    def value_from_object(self, obj: models.Model) -> Any:
        return obj.__dict__.get(self.attname)

    @sensitive_variables()
    def get_prep_value(self, value: Any) -> Any:
        if value is None or value == "":
            return value
        sealed = value if isinstance(value, Sealed) else seal(str(value))
        return PREFIX + sealed.token

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(obj.__dict__.get(self.attname)) or "")

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None

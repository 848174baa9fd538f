"""Secrets at rest: a text field encrypted with the keys in RESOURCEPOOL["SECRET_KEYS"].

The first key encrypts, every key decrypts, so a key is replaced by putting the new one in front and running
``manage.py resourcepool_rotate_secrets``. A value is encrypted when it is set, and
decrypted when it is read, not when its row is loaded.
"""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.query_utils import DeferredAttribute
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from resourcepool.resources.sealing import Sealed, seal
from resourcepool.resources.secret_input import SecretField, SecretInput

PREFIX = "sealed:"


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
    """Text that is encrypted in the database. Cannot be searched for, ordered by or selected on.

    In forms it is entered and never shown: what is left empty stays as it is stored. ``full_clean`` leaves it alone.
    """

    descriptor_class = _OpensWhenRead

    def contribute_to_class(self, cls: Any, name: str, private_only: bool = False) -> None:
        super().contribute_to_class(cls, name, private_only)
        # Django would read it, which may fail, and set it anew.
        cls.clean_fields = _without(name, cls.clean_fields)

    @property
    def flatchoices(self) -> list[tuple[None, str]]:
        """Have the admin, where it shows values that cannot be edited, show none of this."""
        return [(None, "")]

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        return self.to_python(value)

    def to_python(self, value: Any) -> Any:
        """Return what lies in the database, or in a fixture; never what somebody has typed."""
        if isinstance(value, str) and value.startswith(PREFIX):
            return Sealed(value.removeprefix(PREFIX))
        return value

    @sensitive_variables()
    def clean(self, value: Any, model_instance: Any) -> Any:
        """Return ``value``, which is no token whatever it looks like; raises ValidationError."""
        self.validate(value, model_instance)
        self.run_validators(value)
        return value

    def formfield(self, **options: Any) -> Any:
        """Return the field for forms, whatever widget the admin has for texts."""
        widget = options.pop("widget", None)
        kind = widget if isinstance(widget, type) else type(widget)
        if issubclass(kind, SecretInput):
            options["widget"] = widget
        usual = {
            "form_class": SecretField,
            "widget": SecretInput(attrs={"class": "vTextField"}),
            "validators": self.validators,
            "help_text": self.help_text or _("Leave empty to keep the stored one."),
        }
        return super().formfield(**{**usual, **options})

    def save_form_data(self, instance: models.Model, data: Any) -> None:
        if not isinstance(data, Sealed):
            super().save_form_data(instance, data)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        return model_instance.__dict__.get(self.attname)  # as it is: reading the attribute would decrypt it

    def value_from_object(self, obj: models.Model) -> Any:
        """Return it sealed; of one that was not read, something that stands for it."""
        return obj.__dict__.get(self.attname, Sealed(""))

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


def _without(name: str, clean_fields: Any) -> Any:
    def clean_others(self: Any, exclude: Any = None) -> None:
        clean_fields(self, {*(exclude or ()), name})

    return clean_others

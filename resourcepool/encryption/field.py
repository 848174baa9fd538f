"""Secrets at rest: a text field encrypted with the keys in RESOURCEPOOL["SECRET_KEYS"].

The first key encrypts, every key decrypts, so a key is replaced by putting the new one in front and running
``manage.py resourcepool_rotate_secrets``. A value is encrypted when it is set, and
decrypted when it is read, not when its row is loaded.

It is bound to its column when it is set, and to its row when that is saved: copied to another row, nobody can read it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import signals
from django.db.models.query_utils import DeferredAttribute
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from resourcepool.encryption.form_field import SecretField, SecretInput
from resourcepool.encryption.secret import ANY_PURPOSE, EncryptedSecret, Purpose, encrypt
from resourcepool.exceptions import SecretUnreadable
from resourcepool.text import TextField

PREFIX = "sealed:"


class _DecryptedOnRead(DeferredAttribute):
    field: Any

    @sensitive_variables()
    def __get__(self, instance: Any, cls: Any = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__.get(self.field.attname, self)
        value = super().__get__(instance, cls) if value is self else value
        return self._opened(value, instance) if isinstance(value, EncryptedSecret) else value

    @sensitive_variables()
    def _opened(self, value: EncryptedSecret, instance: Any) -> str:
        try:
            text = value.open(*self.field.purposes(instance))
        except SecretUnreadable as error:
            error.row = (type(instance), instance.pk) if self.field.was_readable else None
            raise
        self.field.was_readable = True
        return text

    @sensitive_variables()
    def __set__(self, instance: Any, value: Any) -> None:
        # At once, so that no instance carries the text about, and no error report on its way to the database does.
        is_text = isinstance(value, str) and value
        instance.__dict__[self.field.attname] = encrypt(value, self.field.purpose()) if is_text else value


class _FixtureValue(NamedTuple):
    """A secret of a fixture on its way to the database: what reads the instance meanwhile does not decrypt it."""

    sealed: EncryptedSecret


class EncryptedTextField(TextField):
    """Text that is encrypted in the database. Cannot be searched for, ordered by or selected on.

    In forms it is entered and never shown: what is left empty stays as it is stored. ``full_clean`` leaves it alone.

    Args:
        bound_to: names of the columns, of texts or whole numbers, that tell a row from all others; the primary key, if
            none are named and it is known before the row is inserted. Once one of them has changed, what was stored
            can be read no more.
        called: "app.Model.field" as it was when the secrets were stored, should one of these be renamed.

    Not promised: that ``update`` and ``bulk_update`` bind to the row. They bind to the column alone; the next ``save``,
    or ``resourcepool_rotate_secrets``, does the rest. ``loaddata`` stores what ``dumpdata`` wrote, readable or not.
    """

    descriptor_class = _DecryptedOnRead
    was_readable = False  # this process has read a secret of this column
    non_db_attrs = (*TextField.non_db_attrs, "bound_to", "called")

    def __init__(self, *args: Any, bound_to: Sequence[str] = (), called: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bound_to, self.called = tuple(bound_to), called

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        own = {"bound_to": self.bound_to, "called": self.called}
        return name, path, args, {**kwargs, **{option: value for option, value in own.items() if value}}

    def check(self, **kwargs: Any) -> list[Any]:
        """Report columns that are none (E014), and secrets that any row of the table could have (W027)."""
        return [*super().check(**kwargs), *self._check_bound()]

    def _check_bound(self) -> Iterator[CheckMessage]:
        names = {field.name for field in self.model._meta.concrete_fields} - {self.name}
        if unknown := sorted(set(self.bound_to) - names):
            text = f"bound_to names no other columns of this model: {', '.join(unknown)}."
            yield Error(text, obj=self, id="resourcepool.E014")
        elif not self._binding():
            hint = "Name the columns that tell its rows apart, e.g. bound_to=['name']; see docs/settings.md, Secrets."
            text = "what is encrypted can be read in any row of the table it is copied to."
            yield CheckWarning(text, hint=hint, obj=self, id="resourcepool.W027")

    def purpose(self, *row: object) -> Purpose:
        """Return what a secret in this column is sealed for; with the values of ``bound_to``, in this row."""
        return ("column", self.called or f"{self.model._meta.label}.{self.name}", *map(str, row))

    def purposes(self, instance: models.Model) -> list[Purpose]:
        """Return what a secret of ``instance`` may have been sealed for, the strictest first."""
        return self.purposes_of(
            *(as_stored(column, getattr(instance, column.attname)) for column in self._binding())
        )

    def purposes_of(self, *row: object) -> list[Purpose]:
        """Return the same for the row with these values of ``bound_to``; None: not known."""
        is_known = bool(row) and not any(value is None for value in row)
        return [*([self.purpose(*row)] if is_known else []), self.purpose(), ANY_PURPOSE]

    def _binding(self) -> list[Any]:
        meta = self.model._meta
        if self.bound_to:
            return [meta.get_field(name) for name in self.bound_to]
        return [] if any(isinstance(field, models.AutoField) for field in meta.pk_fields) else meta.pk_fields

    def contribute_to_class(self, cls: Any, name: str, private_only: bool = False) -> None:
        super().contribute_to_class(cls, name, private_only)
        # Django would read it, which may fail, and set it anew.
        cls.clean_fields = _without(name, cls.clean_fields)
        # So would loaddata: one that no key decrypts would keep it from restoring all others.
        signals.pre_save.connect(self._keep_as_loaded, sender=cls)
        signals.post_save.connect(self._read_again, sender=cls)

    def _keep_as_loaded(self, instance: Any, raw: bool, **_: Any) -> None:
        value = instance.__dict__.get(self.attname)
        if raw and isinstance(value, EncryptedSecret):
            instance.__dict__[self.attname] = _FixtureValue(value)

    def _read_again(self, instance: Any, raw: bool, **_: Any) -> None:
        value = instance.__dict__.get(self.attname)
        if raw and isinstance(value, _FixtureValue):
            instance.__dict__[self.attname] = value.sealed

    @property
    def flatchoices(self) -> list[tuple[None, str]]:
        """Have the admin, where it shows values that cannot be edited, show none of this."""
        return [(None, "")]

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        return self.to_python(value)

    def to_python(self, value: Any) -> Any:
        """Return what lies in the database, or in a fixture; never what somebody has typed."""
        if isinstance(value, str) and value.startswith(PREFIX):
            return EncryptedSecret(value.removeprefix(PREFIX))
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
        if issubclass(options.setdefault("form_class", SecretField), SecretField):
            options["bound_to"] = self.bound_to
        usual = {
            "widget": SecretInput(attrs={"class": "vTextField"}),
            "validators": self.validators,
            "help_text": self.help_text or _("Leave empty to keep the stored one."),
        }
        return super().formfield(**{**usual, **options})

    def save_form_data(self, instance: models.Model, data: Any) -> None:
        if not isinstance(data, EncryptedSecret):
            super().save_form_data(instance, data)

    @sensitive_variables()
    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return it sealed for this row."""
        value = model_instance.__dict__.get(self.attname)
        # The instance keeps its own: what is refused now may be saved under another name.
        return value.rebound_to(*self.purposes(model_instance)) if isinstance(value, EncryptedSecret) else value

    def value_from_object(self, obj: models.Model) -> Any:
        """Return it sealed; of one that was not read, something that stands for it."""
        return obj.__dict__.get(self.attname, EncryptedSecret(""))

    @sensitive_variables()
    def get_prep_value(self, value: Any) -> Any:
        if value is None or value == "":
            return value
        if isinstance(value, _FixtureValue):
            return PREFIX + value.sealed.token
        sealed = value if isinstance(value, EncryptedSecret) else encrypt(str(value), self.purpose())
        return PREFIX + sealed.token

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(obj.__dict__.get(self.attname)) or "")

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None


def as_stored(column: Any, value: Any) -> Any:
    """Return ``value`` as ``column`` gives it back when it is read: "80" as 80, a text's own ``Enum`` as that text.

    None: what an expression makes of it is not known.
    """
    try:
        found = None if hasattr(value, "resolve_expression") else column.to_python(value)
    except ValidationError:
        found = value
    return str.__str__(found) if isinstance(found, str) else found


def _without(name: str, clean_fields: Any) -> Any:
    def clean_others(self: Any, exclude: Any = None) -> None:
        clean_fields(self, {*(exclude or ()), name})

    return clean_others

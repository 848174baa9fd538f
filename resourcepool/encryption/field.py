"""A text field that is encrypted in the database; ``secret`` explains how.

A value is encrypted when it is assigned, and decrypted when it is read, not when its row is loaded.

A value is bound to its column when it is assigned, and to its row when the row is saved: a copy in another row cannot
be decrypted.

The form field never shows the stored value, and keeps it if the input is empty.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django import forms
from django.core.checks import CheckMessage, Error, Warning as CheckWarning
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.query_utils import DeferredAttribute
from django.views.decorators.debug import sensitive_variables

from resourcepool.documentation import documented
from resourcepool.encryption.secret import EncryptedSecret, Purpose, encrypt
from resourcepool.events import localized
from resourcepool.exceptions import SecretUnreadable
from resourcepool.text import TextField
from resourcepool.translation import gettext_lazy as _

PREFIX = "sealed:"
TRIED = ("tried",)  # purpose of a trial encryption whose result is dropped
STALE = EncryptedSecret("")  # marks a stored value that is bound to other values than those entered


class SecretInput(forms.PasswordInput):
    """Shows neither the stored nor the entered value; browsers do not fill it in."""

    def __init__(self, attrs: Any = None) -> None:
        super().__init__({"autocomplete": "new-password", **(attrs or {})}, render_value=False)


class _Entered(forms.BoundField):
    """The entered text; if empty, the stored value, still encrypted."""

    field: Any

    @property
    @sensitive_variables()
    def data(self) -> Any:
        entered = super().data
        if entered or not isinstance(self.initial, EncryptedSecret):
            return entered or ""
        return STALE if any(map(self._is_edited, self.field.bound_to)) else self.initial

    def _is_edited(self, name: str) -> bool:
        other = self.form[name] if name in self.form.fields else None
        return other is not None and other.field.has_changed(other.initial, other.data)


class SecretField(forms.CharField):
    """Returns the entered text, which is never treated as a token, or the stored ``EncryptedSecret`` to keep."""

    widget = SecretInput
    bound_field_class = _Entered

    def __init__(self, *, bound_to: Sequence[str] = (), **options: Any) -> None:
        super().__init__(**{"strip": False, **options})
        self.bound_to = bound_to

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Return the attributes without ``maxlength``, by which browsers would truncate pasted text unseen."""
        return {name: value for name, value in super().widget_attrs(widget).items() if name != "maxlength"}

    @sensitive_variables()
    def clean(self, value: Any) -> Any:
        """Return the value; raises ValidationError for a missing key, or if the stored value cannot be kept."""
        if value is STALE:
            raise ValidationError(
                _("Enter it again: the stored value belongs to the fields as they were before your changes.")
            )
        if isinstance(value, EncryptedSecret):
            return value
        text = super().clean(value)
        try:
            if text:
                encrypt(text, TRIED)
        except SecretUnreadable as error:
            raise ValidationError(localized(error)) from None
        return text

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether a text was entered; does not reveal whether it equals the stored one."""
        return not self.disabled and bool(data) and not isinstance(data, EncryptedSecret)


class _DecryptedOnRead(DeferredAttribute):
    field: Any

    @sensitive_variables()
    def __get__(self, instance: Any, cls: Any = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__.get(self.field.attname, self)
        value = super().__get__(instance, cls) if value is self else value
        return self._opened(value, instance) if type(value) is EncryptedSecret else value

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
        # Encrypted at once, so that neither the instance nor an error report contains the text.
        is_text = isinstance(value, str) and value
        instance.__dict__[self.field.attname] = encrypt(value, self.field.column_purpose) if is_text else value


class _FromFixture(EncryptedSecret):
    """A secret of a fixture, which ``loaddata`` stores unread: one unreadable secret would stop it otherwise."""


class EncryptedTextField(TextField):
    """Text that is encrypted in the database. It cannot be searched, ordered or selected by.

    Forms accept it and never show it: an empty input keeps the stored value. ``full_clean`` skips it.

    Args:
        bound_to: names of the text or integer columns that identify the row. Default: the primary key, if it is known
            before the row is inserted. When one of these columns changes, the stored value cannot be decrypted.
        called: the former "app.Model.field", if one of these was renamed after secrets were stored.

    Not promised: that ``update`` and ``bulk_update`` bind to the row. They bind to the column alone; the next ``save``
    or ``resourcepool_rotate_secrets`` binds to the row. ``loaddata`` stores the output of ``dumpdata`` unchanged,
    readable or not.
    """

    descriptor_class = _DecryptedOnRead
    was_readable = False  # this process has decrypted a secret of this column
    non_db_attrs = (*TextField.non_db_attrs, "bound_to", "called")

    def __init__(self, *args: Any, bound_to: Sequence[str] = (), called: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bound_to, self.called = tuple(bound_to), called

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        own = {"bound_to": self.bound_to, "called": self.called}
        return name, path, args, {**kwargs, **{option: value for option, value in own.items() if value}}

    def check(self, **kwargs: Any) -> list[Any]:
        """Report unknown columns in ``bound_to`` (E014), and secrets that are bound to no row (W027)."""
        return [*super().check(**kwargs), *self._check_bound()]

    def _check_bound(self) -> Iterator[CheckMessage]:
        names = {field.name for field in self.model._meta.concrete_fields} - {self.name}
        if unknown := sorted(set(self.bound_to) - names):
            text = f"bound_to must name other columns of this model, not: {', '.join(unknown)}."
            yield Error(text, obj=self, id="resourcepool.E014")
        elif not self._binding():
            page = documented("how-to/secrets")
            hint = f"Name the columns that identify a row, e.g. bound_to=['name']; see {page}."
            text = "its secrets are bound to no row: a copy can be decrypted in any row of the table."
            yield CheckWarning(text, hint=hint, obj=self, id="resourcepool.W027")

    @property
    def column_purpose(self) -> Purpose:
        """The purpose of secrets in this column whose row is unknown."""
        return ("column", self.called or f"{self.model._meta.label}.{self.name}")

    def purposes(self, instance: models.Model) -> list[Purpose]:
        """Return the purposes that a secret of ``instance`` may have been encrypted for, strictest first."""
        return self.purposes_of(
            *(_as_stored(column, getattr(instance, column.attname)) for column in self._binding())
        )

    def purposes_of(self, *row: object) -> list[Purpose]:
        """Return the same for the row with these values of ``bound_to``; None: unknown."""
        is_known = bool(row) and None not in row
        of_row = [(*self.column_purpose, *map(str, row))] if is_known else []
        return [*of_row, self.column_purpose]

    def _binding(self) -> list[Any]:
        meta = self.model._meta
        if self.bound_to:
            return [meta.get_field(name) for name in self.bound_to]
        return [] if any(isinstance(field, models.AutoField) for field in meta.pk_fields) else meta.pk_fields

    def contribute_to_class(self, cls: Any, name: str, private_only: bool = False) -> None:
        super().contribute_to_class(cls, name, private_only)
        # Django's clean_fields would decrypt the value, which may fail, and assign it again.
        cls.clean_fields = _without(name, cls.clean_fields)

    @property
    def flatchoices(self) -> list[tuple[None, str]]:
        """Hide the value where the admin shows read-only fields."""
        return [(None, "")]

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        return EncryptedSecret(value.removeprefix(PREFIX)) if value and value.startswith(PREFIX) else value

    def to_python(self, value: Any) -> Any:
        """Convert a value from a fixture; never user input."""
        stored = self.from_db_value(value) if isinstance(value, str) else value
        return _FromFixture(stored.token) if isinstance(stored, EncryptedSecret) else stored

    @sensitive_variables()
    def clean(self, value: Any, model_instance: Any) -> Any:
        """Return ``value``, which is plain text even if it looks like a token; raises ValidationError."""
        self.validate(value, model_instance)
        self.run_validators(value)
        return value

    def formfield(self, **options: Any) -> Any:
        """Return the form field; ignores the admin's widget for texts."""
        widget = options.pop("widget", None)
        kind = widget if isinstance(widget, type) else type(widget)
        if issubclass(kind, SecretInput):
            options["widget"] = widget
        if issubclass(options.setdefault("form_class", SecretField), SecretField):
            options["bound_to"] = self.bound_to
        defaults = {
            "widget": SecretInput(attrs={"class": "vTextField"}),
            "validators": self.validators,
            "help_text": self.help_text or _("Leave empty to keep the stored value."),
        }
        return super().formfield(**{**defaults, **options})

    def save_form_data(self, instance: models.Model, data: Any) -> None:
        if not isinstance(data, EncryptedSecret):
            super().save_form_data(instance, data)

    @sensitive_variables()
    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return the value encrypted for this row."""
        value = model_instance.__dict__.get(self.attname)
        # The instance keeps its own: after a failed save it may be saved under another name.
        return value.rebound_to(*self.purposes(model_instance)) if isinstance(value, EncryptedSecret) else value

    def value_from_object(self, obj: models.Model) -> Any:
        """Return the encrypted value; a placeholder, if the field was not loaded."""
        return obj.__dict__.get(self.attname, EncryptedSecret(""))

    @sensitive_variables()
    def get_prep_value(self, value: Any) -> Any:
        if value is None or value == "":
            return value
        secret = value if isinstance(value, EncryptedSecret) else encrypt(str(value), self.column_purpose)
        return PREFIX + secret.token

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(obj.__dict__.get(self.attname)) or "")

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None


def _as_stored(column: Any, value: Any) -> Any:
    """Return ``value`` as it is read back from ``column``: "80" as 80, a text ``Enum`` as text.

    None for an expression, whose value is unknown.
    """
    try:
        stored = None if hasattr(value, "resolve_expression") else column.to_python(value)
    except ValidationError:
        stored = value
    return str.__str__(stored) if isinstance(stored, str) else stored


def _without(name: str, clean_fields: Any) -> Any:
    def clean_others(self: Any, exclude: Any = None) -> None:
        clean_fields(self, {*(exclude or ()), name})

    return clean_others

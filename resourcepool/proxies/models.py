"""The model of forward proxies."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.views.decorators.debug import sensitive_variables

from resourcepool.db.dialect import KeyField
from resourcepool.encryption.field import EncryptedTextField, as_stored
from resourcepool.events import Sentence, localized
from resourcepool.exceptions import BadOption
from resourcepool.proxies import fields
from resourcepool.proxies.fields import IDENTITY
from resourcepool.resources.models import PERMISSIONS, AbstractResource
from resourcepool.text import CharField
from resourcepool.translation import gettext_lazy as _
from resourcepool.translation import gettext_noop

_ADDRESS = frozenset({*IDENTITY, "password"})


class Proxy(AbstractResource):
    """A forward proxy. ``url`` carries the password; ``str`` and ``repr`` never do."""

    default_checker = "resourcepool.proxies.health_check.checker.ProxyChecker"

    class Scheme(models.TextChoices):
        HTTP = "http", "http"
        HTTPS = "https", "https"
        SOCKS5 = "socks5", "socks5"
        SOCKS5H = "socks5h", _("socks5h (names resolved by the proxy)")

    scheme = CharField(_("scheme"), max_length=10, choices=Scheme.choices, default=Scheme.HTTP)
    host = KeyField(_("host"), max_length=253)
    port = models.PositiveIntegerField(_("port"), validators=[MinValueValidator(1), MaxValueValidator(65_535)])
    username = KeyField(_("user name"), max_length=200, default="", blank=True)
    password = EncryptedTextField(_("password"), default="", blank=True, bound_to=IDENTITY)
    country = CharField(_("country"), max_length=2, default="", blank=True, help_text=_("Two letters."))

    class Meta:
        verbose_name = _("proxy")
        verbose_name_plural = _("proxies")
        default_permissions = PERMISSIONS
        indexes = [models.Index(fields=["in_service", "busy_before"], name="resourcepool_proxy_free")]
        constraints = [
            models.UniqueConstraint(
                fields=["scheme", "host", "port", "username"], name="resourcepool_proxy_identity"
            )
        ]

    def __str__(self) -> str:
        return self.masked_url

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the proxy. If its address was changed and its password was not, the password is cleared.

        Otherwise a user could redirect the stored password to an address of their choice.

        Raises:
            BadOption: ``update_fields`` includes the password, but not all changed columns of the address.
        """
        names = None if (update_fields := kwargs.get("update_fields")) is None else {*update_fields}
        before = {name: value for name, value in self.__dict__.items() if name == "password"}
        if self._changes_address(IDENTITY if names is None else {*IDENTITY} & {*names}):
            if before.get("password") is self.__dict__["_address_read"].get("password"):
                self.password = ""
            if names is not None:
                names.add("password")
        if names is not None:
            kwargs["update_fields"] = names
        try:
            self._refuse_half_an_address(names)
            super().save(*args, **kwargs)
        except BaseException:  # not saved: the caller may set the address back and keep the password
            self.__dict__.pop("password", None)
            self.__dict__.update(before)
            raise

    def _refuse_half_an_address(self, names: Iterable[str] | None) -> None:
        """Raise BadOption if the password would be stored without the address that it is encrypted for."""
        omitted = sorted({*IDENTITY} - {*names}) if names is not None and "password" in names else []
        changed = [name for name in omitted if self._changes_address([name])]
        if changed and self.__dict__.get("password"):
            missing = ", ".join(changed)
            raise BadOption(
                "update_fields",
                sorted(names or ()),
                because=Sentence(
                    gettext_noop("include %(columns)s, too: changed on this instance"), columns=missing
                ),
            )

    def _changes_address(self, names: Iterable[str]) -> bool:
        """Return whether one of these columns was changed since it was read; "80" equals 80."""
        read, get_field = self.__dict__.get("_address_read", {}), self._meta.get_field
        now = {name: self.__dict__[name] for name in names if name in self.__dict__}
        return bool(read) and any(
            as_stored(get_field(name), value) != as_stored(get_field(name), read.get(name))
            for name, value in now.items()
        )

    def _note_state(self, names: Iterable[str] | None = None) -> None:
        super()._note_state(names)
        noted = _ADDRESS if names is None else _ADDRESS & set(names)
        read = self.__dict__.get("_address_read", {})
        self.__dict__["_address_read"] = {**read, **{name: self.__dict__.get(name) for name in noted}}

    def clean(self) -> None:
        """Normalize and validate as the import does: otherwise the same proxy could be added twice."""
        self.notes = self.notes.replace("\r\n", "\n").replace("\r", "\n")  # browsers send \r\n
        for name in ("host", "username", "country", "notes"):
            try:
                setattr(self, name, fields.FIELD_PARSERS[name](getattr(self, name)))
            except fields.BadField as error:
                raise ValidationError({name: localized(error)}) from None

    @property
    @sensitive_variables()
    def url(self) -> str:
        """The URL for HTTP clients, with the password in plain text: not for logs."""
        return self._url(quote(self.password, safe=""))

    @sensitive_variables()
    def for_holder(self) -> dict[str, Any]:
        """Add the ``url`` to the data for REST clients."""
        return {**super().for_holder(), "url": self.url}

    @property
    def masked_url(self) -> str:
        """The URL for people and logs."""
        return self._url("***")

    @sensitive_variables()
    def _url(self, password: str) -> str:
        has_password = bool(self.__dict__.get("password", True))
        login = quote(self.username, safe="") + (f":{password}" if has_password else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{login + '@' if login else ''}{host}:{self.port}"

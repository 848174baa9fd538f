"""The model of forward proxies."""

from typing import Any
from urllib.parse import quote

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.views.decorators.debug import sensitive_variables

from resourcepool.db.dialect import KeyField
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.events import localized
from resourcepool.proxies import fields
from resourcepool.proxies.fields import IDENTITY
from resourcepool.resources.import_file import BadField
from resourcepool.resources.models import PERMISSIONS, AbstractResource
from resourcepool.text import CharField
from resourcepool.translation import gettext_lazy as _


class Proxy(AbstractResource):
    """A forward proxy. ``url`` carries the password; ``str`` and ``repr`` never do.

    The password belongs to the address (``IDENTITY``): when that changes, set the password again in the same ``save``,
    or it is unreadable. So no user can redirect a stored password to an address of their choice.
    """

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

    def clean(self) -> None:
        """Normalize and validate as the import does: otherwise the same proxy could be added twice."""
        self.notes = self.notes.replace("\r\n", "\n").replace("\r", "\n")  # browsers send \r\n
        for name in ("host", "username", "country", "notes"):
            try:
                setattr(self, name, fields.FIELD_PARSERS[name](getattr(self, name)))
            except BadField as error:
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

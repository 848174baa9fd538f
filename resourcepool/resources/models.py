"""Resources: leased rows that say what they are, and whether they may be handed out."""

from collections.abc import Iterable
from typing import Any, ClassVar, Self
from urllib.parse import quote

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from resourcepool.dialect import KeyField
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.retry import retrying
from resourcepool.leases.where import Where
from resourcepool.phrases import shown
from resourcepool.resources import selectors
from resourcepool.resources.importing import fields
from resourcepool.resources.importing.row import IDENTITY
from resourcepool.resources.pool import Pool
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.secret import EncryptedTextField, as_stored
from resourcepool.resources.state import MAX_REASON, STATE_COLUMNS, Status, Verdict
from resourcepool.resources.tags import TagsField

_ADDRESS = frozenset({*IDENTITY, "password"})

# Besides Django's own: to free, quarantine, drain, reserve and return.
PERMISSIONS = ("add", "change", "delete", "view", "operate")


class AbstractResource(AbstractLease):
    """Derive your own kind of resource from this; ``YourModel.pool`` hands its rows out.

    Example::

        class Phone(AbstractResource):
            number = models.CharField(max_length=20, unique=True)
            pool = Pool(ttl=120, cooldown=5)  # only where the settings' defaults do not fit

            class Meta(AbstractResource.Meta):  # brings the index that claims use, and operate_phone
                verbose_name = "phone"

        with Phone.pool.lease(timeout=30) as lease:
            call(lease.resource.number)

    Not promised: that the thing itself knows who holds it. Whoever keeps using a phone, a proxy or an account
    after its lease was lost is not stopped by the database; see ``Lease.ensure_held`` and ``Lease.guard``.
    """

    claimable_when: ClassVar[dict[str, bool]] = {"in_service": True}
    pool: ClassVar[Pool] = Pool()

    in_service = models.BooleanField(_("in service"), default=True, help_text=_("May be handed out."))
    status = models.CharField(
        _("status"), max_length=20, choices=Status.choices, default=Status.IN_SERVICE, editable=False
    )
    reason = models.CharField(_("reason"), max_length=MAX_REASON, default="", blank=True, editable=False)
    until = models.DateTimeField(_("until"), null=True, blank=True, editable=False)
    strikes = models.PositiveIntegerField(_("strikes"), default=0, editable=False)
    struck_at = models.DateTimeField(_("last strike"), null=True, blank=True, editable=False)
    verdict = models.CharField(
        _("last check"), max_length=10, choices=Verdict.choices, default="", blank=True, editable=False
    )
    checked_at = models.DateTimeField(_("checked at"), null=True, blank=True, editable=False)
    latency = models.FloatField(_("latency (s)"), null=True, blank=True, editable=False)
    tags = TagsField(_("tags"), max_length=500, default="", blank=True, help_text=_("Words, e.g. eu fast."))
    weight = models.PositiveIntegerField(
        _("weight"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text=_("How often it is chosen by the strategy “random”, compared with others."),
    )
    notes = models.TextField(_("notes"), default="", blank=True)

    objects: ClassVar[Any] = ResourceQuerySet.as_manager()

    class Meta:
        abstract = True
        default_permissions = PERMISSIONS
        indexes = [models.Index(fields=["in_service", "busy_before"])]

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        instance = super().from_db(*args, **kwargs)
        instance._note_state()
        return instance

    def refresh_from_db(self, using: str | None = None, fields: Any = None, *args: Any, **kwargs: Any) -> None:
        super().refresh_from_db(using, fields, *args, **kwargs)
        self._note_state(fields)

    def save(self, *args: Any, **kwargs: Any) -> None:
        super().save(*args, **kwargs)
        self._note_state(kwargs.get("update_fields"))

    def _note_state(self, names: Iterable[str] | None = None) -> None:
        noted = STATE_COLUMNS if names is None else STATE_COLUMNS & set(names)
        # Another dictionary each time: that of before may be shared with a copy.
        read = self.__dict__.get("_state_read", {})
        self.__dict__["_state_read"] = {**read, **{name: self.__dict__.get(name) for name in noted}}

    def _may_write(self, name: str, value: Any, *, by_name: bool) -> bool:
        # A copy read a while ago must not undo what an operator has decided since: only what was changed here.
        if name in STATE_COLUMNS and not by_name:
            # A copy made by hand knows nothing of the row; one that came from bulk_create() wrote it.
            unknown = value if self._state.adding else object()
            return bool(value != self.__dict__.get("_state_read", {}).get(name, unknown))
        return super()._may_write(name, value, by_name=by_name)

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        return selectors.where(cls, selector, connection)

    @classmethod
    def revive(cls, using: str) -> None:
        retrying(connections[using], ResourceQuerySet(model=cls, using=using).return_due)

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete the row, or retire it if it is held: its holder is not disturbed."""
        using = using or router.db_for_write(type(self), instance=self)
        rows = ResourceQuerySet(model=type(self), using=using)
        return rows.filter(pk=self.pk).delete()


class Proxy(AbstractResource):
    """A forward proxy. ``url`` carries the password; ``str`` and ``repr`` never do."""

    class Scheme(models.TextChoices):
        HTTP = "http", "http"
        HTTPS = "https", "https"
        SOCKS5 = "socks5", "socks5"
        SOCKS5H = "socks5h", _("socks5h (names resolved by the proxy)")

    scheme = models.CharField(_("scheme"), max_length=10, choices=Scheme.choices, default=Scheme.HTTP)
    host = KeyField(_("host"), max_length=253)
    port = models.PositiveIntegerField(_("port"), validators=[MinValueValidator(1), MaxValueValidator(65_535)])
    username = KeyField(_("user name"), max_length=200, default="", blank=True)
    password = EncryptedTextField(_("password"), default="", blank=True, bound_to=IDENTITY)
    country = models.CharField(_("country"), max_length=2, default="", blank=True, help_text=_("Two letters."))

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
        """Save it; where the address changes and no password was set since, the stored one is cleared.

        Otherwise it would be sent to the new address, which somebody may have entered just for that.

        Raises:
            BadOption: ``update_fields`` names the password, and not a column of the address that was changed here.
        """
        names = None if (given := kwargs.get("update_fields")) is None else {*given}
        before = {name: value for name, value in self.__dict__.items() if name == "password"}
        if self._moves(IDENTITY if names is None else {*IDENTITY} & {*names}):
            if before.get("password") is self.__dict__["_address_read"].get("password"):
                self.password = ""
            if names is not None:
                names.add("password")
        if names is not None:
            kwargs["update_fields"] = names
        try:
            self._refuse_half_an_address(names)
            super().save(*args, **kwargs)
        except BaseException:  # the address may be set back, and then it is that of the stored one
            self.__dict__.pop("password", None)
            self.__dict__.update(before)
            raise

    def _refuse_half_an_address(self, names: Iterable[str] | None) -> None:
        """Raise BadOption where a password is to be stored for an address that is not: nobody could read it."""
        left = sorted({*IDENTITY} - {*names}) if names is not None and "password" in names else []
        changed = [name for name in left if self._moves([name])]
        if changed and self.__dict__.get("password"):
            missing = ", ".join(changed)
            raise BadOption("update_fields", sorted(names or ()), f"name {missing}, too: changed here")

    def _moves(self, names: Iterable[str]) -> bool:
        """Tell whether one of these columns has another value than the one that was read; "80" is 80."""
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
        """Take and spell what the import does, or the same proxy could be entered twice, or exported for nothing."""
        self.notes = self.notes.replace("\r\n", "\n").replace("\r", "\n")  # a browser's line ends
        for name in ("host", "username", "country", "notes"):
            try:
                setattr(self, name, fields.CHECKS[name](getattr(self, name)))
            except fields.BadField as error:
                raise ValidationError({name: shown(error)}) from None

    @property
    @sensitive_variables()
    def url(self) -> str:
        """The URL for ``requests`` and the like, with the password in plain text: not for logs."""
        return self._url(quote(self.password, safe=""))

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

"""Resources and proxies in the admin: holder, state and expiry.

A running lease cannot be edited here, only revoked. Passwords can be entered but are never shown.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin.base import ModelForm
from resourcepool.admin.columns import countdown, lines, title_of
from resourcepool.admin.csv_export import export
from resourcepool.admin.events import ActivityAdminMixin
from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.admin.resources.columns import ResourceColumnsMixin
from resourcepool.admin.resources.import_pages import ImportMixin
from resourcepool.admin.resources.operations import DeletionMixin
from resourcepool.db.dialect import DbNow
from resourcepool.events import localized
from resourcepool.exceptions import SecretUnreadable
from resourcepool.history.models import leak_events
from resourcepool.proxies import fields
from resourcepool.proxies.fields import IDENTITY
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.proxies.models import Proxy
from resourcepool.resources.import_file import BadField
from resourcepool.resources.selectors import parse_tags
from resourcepool.resources.state import State, Status, Verdict
from resourcepool.signals import EventKind
from resourcepool.status.resources import why
from resourcepool.status.resources.holders import on_host
from resourcepool.status.resources.pools import in_state
from resourcepool.status.resources.why import ResourceExplanation
from resourcepool.status.search import named
from resourcepool.status.times import format_datetime
from resourcepool.translation import gettext, gettext_lazy as _

HELD, NEVER = "held", "never"
AFTER_LEASE = (
    Status.QUARANTINED,
    Status.RESERVED,
    Status.RETIRED,
)  # of a draining resource; same values as the states


def _in_state(rows: Any, state: str) -> Any:
    if state == HELD:
        return rows.held()
    if state not in State.values:
        return rows
    draining = Q(in_state(State.DRAINING), status=state) if state in AFTER_LEASE else Q(pk__in=())
    return rows.filter(in_state(State(state)) | draining)


def _with_verdict(rows: Any, verdict: str) -> Any:
    if verdict == NEVER:
        return rows.filter(checked_at=None)
    return rows.filter(verdict=verdict) if verdict in Verdict.values else rows


def _tagged(rows: Any, text: str) -> Any:
    try:
        tags = parse_tags(text)
    except ValueError:
        return rows.none()
    return rows.filter(Q(*(("tags__contains", f" {tag} ") for tag in tags)))


# Includes draining resources that will have the state after their lease.
StateFilter = choice_filter(
    "state", _("state"), [(HELD, _("held (leased or draining)")), *State.choices], _in_state
)
VerdictFilter = choice_filter(
    "verdict", _("last check"), [*Verdict.choices, (NEVER, _("never checked"))], _with_verdict
)
TagFilter = text_filter("tag", _("tags"), _("one or more"), _tagged)
HolderFilter = text_filter(
    "held_by", _("holder"), _("starts with"), lambda rows, text: rows.held().filter(holder__startswith=text)
)
# Found in the default holder name or in the history.
HostFilter = text_filter(
    "on_host", _("host of the holder"), _("whole name"), lambda rows, text: on_host(rows.held(), text)
)
CountryFilter = text_filter(
    "in_country", _("country"), _("two letters"), lambda rows, text: rows.filter(country=text.upper())
)


class ResourceAdmin(ActivityAdminMixin, DeletionMixin, ResourceColumnsMixin, ImportMixin):
    """The base for the admin of your own resource models.

    The page of a resource shows its state, the available operations and its activity.
    """

    has_settings = counts_unasked = True
    list_filter: ClassVar[tuple[Any, ...]] = (StateFilter, VerdictFilter, TagFilter, HolderFilter, HostFilter)
    sortable_by = ("held_by",)  # sorting 100,000 texts takes too long
    search_fields: ClassVar[tuple[str, ...]] = ("holder", "tags")
    search_help_text = _("Search by id, full address or any text.")
    exclude: ClassVar[Any] = ("in_service",)
    row_operations = ("revoke", "drain", "quarantine", "return_to_service")
    actions: Any = (export,)  # in addition to the operations

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the rows annotated with the time of the database's clock, which decides their state."""
        return super().get_queryset(request).annotate(db_now=DbNow())

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find the resource that the term names; otherwise, resources that contain its words."""
        condition = named(self.model, search_term.strip()) if search_term.strip() else None
        if condition is not None and (matches := queryset.filter(condition)).exists():
            return matches, False
        return super().get_search_results(request, queryset, search_term)

    @method_decorator(sensitive_post_parameters())
    @sensitive_variables()
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Keep the submitted values, which may include a password, out of error reports."""
        return super().changeform_view(request, *args, **kwargs)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Add the answer of ``resourcepool_why``, and the leaks of the lease."""
        more, one = super().page_context(request, row), why.resource(row)
        _state, *facts = [
            *why.facts(one, _time_left),
            *((gettext("leak"), leak_text(leak)) for leak in _leaks(one)),
        ]
        shown = [("fact", *fact) for fact in facts]
        return more | {"subtitle": title_of(row), "state": self.state(row), "facts": shown}


def _time_left(seconds: float) -> str:
    over = gettext("Expired or renewed by now; reload the page to see which.")
    return countdown(seconds, gettext("%s, unless renewed"), over)


def _leaks(one: ResourceExplanation) -> Iterable[Any]:
    return leak_events(one.row) if one.lease else ()


def leak_text(event: Any) -> str:
    """Return a sentence about an event of a leak: reported or acknowledged."""
    values = {"at": format_datetime(event.at), "why": localized(event.reason), "who": event.actor}
    if event.what == EventKind.ACKNOWLEDGED:
        return gettext("The leak was acknowledged by %(who)s at %(at)s: %(why)s") % values
    return gettext("Reported as leaked at %(at)s: %(why)s") % values


class ProxyForm(ModelForm):
    """Accepts a new password and never shows the stored one."""

    new_password = forms.CharField(
        label=_("New password"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_(
            "Leave empty to keep the stored password. It is removed when the address or user name changes."
        ),
    )

    class Meta:
        model = Proxy
        fields = ("scheme", "host", "port", "username", "country", "tags", "weight", "notes")

    def clean_new_password(self) -> str:
        """Encrypt it now, so that a missing key becomes an error of this field, like a value that no import accepts."""
        password = str(self.cleaned_data["new_password"])
        try:
            if password:
                self.instance.password = fields.password(password)
        except (BadField, SecretUnreadable) as error:
            raise forms.ValidationError(localized(error)) from None
        return ""


@admin.register(Proxy)
class ProxyAdmin(ResourceAdmin):
    importer = ProxyImporter
    form = ProxyForm
    list_filter: ClassVar[tuple[Any, ...]] = (*ResourceAdmin.list_filter, CountryFilter)
    search_fields: ClassVar[tuple[str, ...]] = (*ResourceAdmin.search_fields, "host", "username")

    @admin.display(description=_("tags, country"))
    def labels(self, resource: Any) -> str:
        return lines(super().labels(resource), resource.country)

    def save_model(self, request: HttpRequest, obj: Proxy, form: ModelForm, change: bool) -> None:
        """Remove the stored password if the address changed without a new one, and say so."""
        removes = change and _loses_password(form) and bool(obj.__dict__.get("password"))
        if removes:
            obj.password = ""
        super().save_model(request, obj, form, change)
        if removes:
            text = _("The stored password was removed because the address changed. Enter it again if needed.")
            self.message_user(request, text, messages.WARNING)

    def changed_columns(self, form: ModelForm) -> list[str]:
        """Return the changed columns, including that of the password."""
        columns = ["password" if name == "new_password" else name for name in super().changed_columns(form)]
        return [*columns, "password"] if _loses_password(form) else columns


def _loses_password(form: ModelForm) -> bool:
    """Whether the address changed, to which the stored password belongs, and no new password was entered."""
    return "new_password" not in form.changed_data and not set(IDENTITY).isdisjoint(form.changed_data)

"""Import proxies from an uploaded file: show the plan, then import all or nothing after confirmation."""

import base64
import datetime
import io
import json
import zlib
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.decorators import method_decorator
from django.utils.functional import lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin.resources.operations import ResourceOperationsMixin
from resourcepool.db.dialect import read_clock
from resourcepool.db.retry import retrying
from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError, SecretUnreadable
from resourcepool.proxies.formats import COLUMNS
from resourcepool.proxies.import_plan import ImportResult
from resourcepool.proxies.import_proxies import BadLines, import_proxies
from resourcepool.proxies.models import Proxy
from resourcepool.translation import gettext as _
from resourcepool.translation import gettext_lazy, ngettext_lazy

MAX_FILE_BYTES = 1_000_000  # encrypted, it must fit into a form (DATA_UPLOAD_MAX_MEMORY_SIZE)
PLAN_SECONDS = 3_600  # between the plan and the confirmation
PLAN_PURPOSE = ("import of proxies",)
OPTIONS = ("update", "sync", "skip_bad")

NOTES = {
    "retired": ngettext_lazy("%d is not in the file: retired.", "%d are not in the file: retired."),
    "returned": ngettext_lazy("%d changed proxy returns to service.", "%d changed proxies return to service."),
    "differing": ngettext_lazy(
        "%d existing proxy differs from the file and is left unchanged.",
        "%d existing proxies differ from the file and are left unchanged.",
    ),
    "uncompared": ngettext_lazy(
        "%d unchanged proxy has a password in the file; it is not compared with the stored one.",
        "%d unchanged proxies have passwords in the file; they are not compared with the stored ones.",
    ),
    "staying_retired": ngettext_lazy("%d is still retired.", "%d are still retired."),
    "repeated": ngettext_lazy("%d line is an exact duplicate.", "%d lines are exact duplicates."),
    "bad_count": ngettext_lazy("%d bad line skipped.", "%d bad lines skipped."),
}


def _file_help() -> str:
    text = _(
        "UTF-8: CSV with a header (%(columns)s), or one address per line. At most 1 MB; for larger files use"
        " manage.py resourcepool_import."
    )
    return text % {"columns": ", ".join(COLUMNS)}


class UploadForm(forms.Form):
    """A file and options; ``sync`` needs the permission to operate proxies."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=lazy(_file_help, str)(),  # "lazy % columns" would be translated once, at import
    )
    update = forms.BooleanField(
        label=gettext_lazy("Update existing proxies with the values in the file"), required=False
    )
    sync = forms.BooleanField(
        label=gettext_lazy("Retire proxies that are not in the file, and return retired ones that are"),
        required=False,
    )
    skip_bad = forms.BooleanField(label=gettext_lazy("Skip bad lines and import the others"), required=False)

    def __init__(self, *args: Any, may_operate: bool) -> None:
        super().__init__(*args)
        if not may_operate:
            sync = self.fields["sync"]
            sync.disabled = True  # Django then ignores a submitted value
            sync.help_text = _("You need the permission to operate proxies for this.")

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_FILE_BYTES:
            text = _("At most 1 MB here; for larger files use manage.py resourcepool_import.")
            raise forms.ValidationError(text)
        return file


class ImportMixin(ResourceOperationsMixin):
    """Adds the import to the list of proxies, for users who may add and change proxies."""

    change_list_template = "resourcepool/admin/proxies.html"
    import_template = "resourcepool/admin/import.html"

    def get_urls(self) -> list[URLPattern]:
        return [self.url_pattern("import/", self.import_view, "import"), *super().get_urls()]

    def has_import_permission(self, request: HttpRequest) -> bool:
        return bool(self.has_add_permission(request) and self.has_change_permission(request))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        url = self.page_url("import") if self.has_import_permission(request) else ""
        return super().changelist_view(request, {**(extra_context or {}), "import_url": url})

    @method_decorator(sensitive_post_parameters())
    @sensitive_variables()  # all frames from here on may hold passwords of the file
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form; for a file, the plan; after confirmation, import it."""
        if not self.has_import_permission(request):
            raise PermissionDenied
        if request.method == "POST" and "sealed" in request.POST:
            return self._import(request)
        may_operate = self.has_operate_permission(request)
        form = UploadForm(request.POST or None, request.FILES or None, may_operate=may_operate)
        if request.method == "POST" and form.is_valid():
            return self._show_plan(request, form)
        return self._render(request, form=form)

    def _show_plan(self, request: HttpRequest, form: UploadForm) -> HttpResponse:
        options = {name: form.cleaned_data[name] for name in OPTIONS}
        file = form.cleaned_data["file"]
        content, name = file.read(MAX_FILE_BYTES + 1), "".join(c for c in file.name if c.isprintable())[:100]
        try:
            plan = _run_import(content, name, options, dry_run=True)
            sealed = pack(content, name, options, request.user.pk)
        except ResourcePoolError as error:
            form.add_error("file", error_lines(error))
            return self._render(request, form=form)
        return self._render(request, plan=plan, sentences=sentences(plan), sealed=sealed, name=name, **options)

    def _import(self, request: HttpRequest) -> HttpResponse:
        try:
            content, name, options = unpack(request.POST["sealed"], request.user.pk)
            if options["sync"] and not self.has_operate_permission(request):
                raise PermissionDenied  # revoked since the plan was made
            result = _run_import(content, name, options, dry_run=False, actor=request.user.get_username())
        except ResourcePoolError as error:
            for line in error_lines(error):
                self.message_user(request, line, messages.ERROR)
            return HttpResponseRedirect(self.page_url("import"))
        text = " ".join([_("Imported %s.") % name, *sentences(result)])
        LogEntry.objects.create(  # one entry, not one for each of 20,000 proxies
            user_id=str(request.user.pk),
            content_type=ContentType.objects.get_for_model(self.model, for_concrete_model=False),
            object_repr=_("import of %s") % name,
            action_flag=CHANGE,
            change_message=text,
        )
        self.message_user(request, text, messages.SUCCESS)
        return HttpResponseRedirect(self.page_url("changelist"))

    def _render(self, request: HttpRequest, **context: Any) -> HttpResponse:
        return self.render_page(request, self.import_template, _("Import proxies"), **context)


def _run_import(
    content: bytes, name: str, options: dict[str, bool], *, dry_run: bool, actor: str = ""
) -> ImportResult:
    arguments: dict[str, Any] = {name: options[name] for name in OPTIONS}
    arguments |= {"dry_run": dry_run, "actor": actor, "stream": io.BytesIO(content)}
    return import_proxies(name, **arguments, compare_passwords=False)


def pack(content: bytes, name: str, options: dict[str, bool], user: Any) -> str:
    """Return a file and the options as encrypted text, for the form that asks for confirmation.

    Raises:
        SecretUnreadable: no key is configured.
        DatabaseUnavailable: the database's clock cannot be read.
    """
    plan = {"at": _now(), "user": str(user), "name": name, "options": options}
    compressed = base64.b64encode(zlib.compress(content)).decode()
    return encrypt(json.dumps({**plan, "content": compressed}), PLAN_PURPOSE).token


def unpack(token: str, user: Any) -> tuple[bytes, str, dict[str, bool]]:
    """Return the file and options that the same user packed within the last hour.

    Raises:
        SecretUnreadable: the token is invalid, another user's, or too old.
        DatabaseUnavailable: the database's clock cannot be read.
    """
    plan = json.loads(EncryptedSecret(token).open(PLAN_PURPOSE))
    if plan["user"] != str(user):
        raise SecretUnreadable(_("This plan belongs to another user. Upload the file yourself."))
    if _now() - plan["at"] >= PLAN_SECONDS:
        raise SecretUnreadable(_("This plan is more than an hour old. Upload the file again."))
    return zlib.decompress(base64.b64decode(plan["content"])), plan["name"], plan["options"]


def _now() -> float:
    """Return the time of the database's clock, which all web servers share, in seconds since the epoch."""
    connection = connections[Proxy.pool.using]
    now = retrying(connection, lambda: read_clock(connection))
    return now.replace(tzinfo=datetime.UTC).timestamp()


def error_lines(error: ResourcePoolError) -> list[str]:
    """Return the messages of ``error``, one per bad line."""
    if isinstance(error, BadLines):
        more = error.bad_count - len(error.bad)
        lines = [localized(line) for line in error.bad]
        return [*lines, _("and %d more bad lines") % more] if more > 0 else lines
    return [localized(error)]


def sentences(result: ImportResult) -> list[str]:
    """Return the result or plan of an import in sentences."""
    counts = {
        "total": result.total,
        "new": result.new,
        "changed": result.changed,
        "unchanged": result.unchanged,
    }
    summary = _("%(total)d in the file: %(new)d new, %(changed)d changed, %(unchanged)d unchanged.") % counts
    return [summary, *(text % count for name, text in NOTES.items() if (count := getattr(result, name)))]

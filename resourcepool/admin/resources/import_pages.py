"""Proxies from an uploaded file: first the plan, then the question, then all of it or nothing."""

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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin.resources.operations import ResourceOperationsMixin
from resourcepool.database.retry import retrying
from resourcepool.dialect import read_clock
from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError, SecretUnreadable
from resourcepool.proxies.formats import COLUMNS
from resourcepool.proxies.import_plan import ImportResult
from resourcepool.proxies.import_proxies import BadLines, import_proxies
from resourcepool.proxies.models import Proxy

MOST = 1_000_000  # bytes; sealed, it must fit into a form (DATA_UPLOAD_MAX_MEMORY_SIZE)
KEPT = 3_600  # seconds between the plan and the answer
PLAN = ("import of proxies",)
CHOICES = ("update", "sync", "skip_bad")

BESIDES = {
    "retired": ngettext_lazy("%d is not in the file: retired.", "%d are not in the file: retired."),
    "returned": ngettext_lazy(
        "%d of the changed is back in service.", "%d of the changed are back in service."
    ),
    "differing": ngettext_lazy(
        "%d of the unchanged has other values in the file.",
        "%d of the unchanged have other values in the file.",
    ),
    "uncompared": ngettext_lazy(
        "%d of the unchanged has a password in the file, which is not compared with the stored one.",
        "%d of the unchanged have passwords in the file, which are not compared with the stored ones.",
    ),
    "staying_retired": ngettext_lazy("%d is retired and stays so.", "%d are retired and stay so."),
    "repeated": ngettext_lazy(
        "%d line is an exact copy of one before.", "%d lines are exact copies of ones before."
    ),
    "bad_count": ngettext_lazy("%d bad line is skipped.", "%d bad lines are skipped."),
}


def _of_the_file() -> str:
    text = _(
        "UTF-8: CSV with a header (%(columns)s), or one address a line. At most 1 MB; for more there is"
        " manage.py resourcepool_import."
    )
    return text % {"columns": ", ".join(COLUMNS)}


class UploadForm(forms.Form):
    """A file, and what to do with it; retiring and returning is for those who may operate proxies."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=lazy(_of_the_file, str)(),  # "lazy % columns" would be English for good
    )
    update = forms.BooleanField(
        label=gettext_lazy("Give proxies that exist the values of the file"), required=False
    )
    sync = forms.BooleanField(
        label=gettext_lazy("Retire proxies that are not in the file, return retired ones that are in it"),
        required=False,
    )
    skip_bad = forms.BooleanField(
        label=gettext_lazy("Import the good lines in spite of bad ones"), required=False
    )

    def __init__(self, *args: Any, may_operate: bool) -> None:
        super().__init__(*args)
        if not may_operate:
            sync = self.fields["sync"]
            sync.disabled = True  # what is sent all the same counts for nothing
            sync.help_text = _("You need the permission to operate proxies for this.")

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MOST:
            text = _("At most 1 MB here; for larger files there is manage.py resourcepool_import.")
            raise forms.ValidationError(text)
        return file


class ImportMixin(ResourceOperationsMixin):
    """For those who may add and change proxies; retiring and returning, for those who may also operate them."""

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
    @sensitive_variables()  # here, and in all that it calls: lines of the file, with their passwords
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Take a file, show what would be done, and do it when told so."""
        if not self.has_import_permission(request):
            raise PermissionDenied
        if request.method == "POST" and "sealed" in request.POST:
            return self._do(request)
        may_operate = self.has_operate_permission(request)
        form = UploadForm(request.POST or None, request.FILES or None, may_operate=may_operate)
        if request.method == "POST" and form.is_valid():
            return self._show_plan(request, form)
        return self._answer(request, form=form)

    def _show_plan(self, request: HttpRequest, form: UploadForm) -> HttpResponse:
        wanted = {name: form.cleaned_data[name] for name in CHOICES}
        file = form.cleaned_data["file"]
        content, name = file.read(MOST + 1), "".join(c for c in file.name if c.isprintable())[:100]
        try:
            plan = _carry_out(content, name, wanted, dry_run=True)
            sealed = pack(content, name, wanted, request.user.pk)
        except ResourcePoolError as error:
            form.add_error("file", explained(error))
            return self._answer(request, form=form)
        return self._answer(request, plan=plan, said=sentences(plan), sealed=sealed, name=name, **wanted)

    def _do(self, request: HttpRequest) -> HttpResponse:
        try:
            content, name, wanted = unpack(request.POST["sealed"], request.user.pk)
            if wanted["sync"] and not self.has_operate_permission(request):
                raise PermissionDenied  # it was taken away since the plan was made
            done = _carry_out(content, name, wanted, dry_run=False, actor=request.user.get_username())
        except ResourcePoolError as error:
            for line in explained(error):
                self.message_user(request, line, messages.ERROR)
            return HttpResponseRedirect(self.page_url("import"))
        said = " ".join([_("Imported %s.") % name, *sentences(done)])
        LogEntry.objects.create(  # one line, not one for each of 20,000 proxies
            user_id=str(request.user.pk),
            content_type=ContentType.objects.get_for_model(self.model, for_concrete_model=False),
            object_repr=_("import of %s") % name,
            action_flag=CHANGE,
            change_message=said,
        )
        self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(self.page_url("changelist"))

    def _answer(self, request: HttpRequest, **context: Any) -> HttpResponse:
        return self.render_page(request, self.import_template, _("Import proxies"), **context)


def _carry_out(
    content: bytes, name: str, wanted: dict[str, bool], *, dry_run: bool, actor: str = ""
) -> ImportResult:
    chosen: dict[str, Any] = {choice: wanted[choice] for choice in CHOICES}
    chosen |= {"dry_run": dry_run, "actor": actor, "stream": io.BytesIO(content)}
    return import_proxies(name, **chosen, compare_passwords=False)


def pack(content: bytes, name: str, wanted: dict[str, bool], user: Any) -> str:
    """Return a file and what is wanted of it as text that only this server can read, for the form that asks.

    Raises:
        SecretUnreadable: there is no key.
        DatabaseUnavailable: the time is the database's, and it does not answer.
    """
    kept = {"at": _now(), "user": str(user), "name": name, "wanted": wanted}
    squeezed = base64.b64encode(zlib.compress(content)).decode()
    return encrypt(json.dumps({**kept, "content": squeezed}), PLAN).token


def unpack(token: str, user: Any) -> tuple[bytes, str, dict[str, bool]]:
    """Return what ``pack`` was given by the same user within the last hour.

    Raises:
        SecretUnreadable: it is nothing that was packed, somebody else's, or too old.
        DatabaseUnavailable: the time is the database's, and it does not answer.
    """
    kept = json.loads(EncryptedSecret(token).open(PLAN))
    if kept["user"] != str(user):
        raise SecretUnreadable(_("This plan is somebody else's: upload the file yourself."))
    if _now() - kept["at"] >= KEPT:
        raise SecretUnreadable(_("This plan is more than an hour old: upload the file again."))
    return zlib.decompress(base64.b64decode(kept["content"])), kept["name"], kept["wanted"]


def _now() -> float:
    """Return the time by the database's clock, which all web servers share, in seconds."""
    connection = connections[Proxy.pool.using]
    now = retrying(connection, lambda: read_clock(connection))
    return now.replace(tzinfo=datetime.UTC).timestamp()


def explained(error: ResourcePoolError) -> list[str]:
    """Return what went wrong, a line each."""
    if isinstance(error, BadLines):
        more = error.bad_count - len(error.bad)
        lines = [localized(line) for line in error.bad]
        return [*lines, _("and %d more bad lines") % more] if more > 0 else lines
    return [localized(error)]


def sentences(done: ImportResult) -> list[str]:
    numbers = {"total": done.total, "new": done.new, "changed": done.changed, "unchanged": done.unchanged}
    said = [_("%(total)d in the file: %(new)d new, %(changed)d changed, %(unchanged)d unchanged.") % numbers]
    return said + [text % count for name, text in BESIDES.items() if (count := getattr(done, name))]

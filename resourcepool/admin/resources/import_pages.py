"""Import resources from a file or pasted text: show what happens with each row, then import all or nothing."""

import io
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin.resources.operations import ResourceOperationsMixin
from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError, SecretUnreadable
from resourcepool.resources.import_result import BadLines, ImportResult, format_bad_lines, sentences
from resourcepool.resources.importer import Importer
from resourcepool.translation import gettext as _, gettext_lazy

MAX_FILE_BYTES = 1_000_000  # encrypted, it must fit into a form (DATA_UPLOAD_MAX_MEMORY_SIZE)
PLAN_SECONDS = 3_600  # between the plan and the confirmation
PLAN_PURPOSE = ("import",)
PASTED = gettext_lazy("pasted text")
OPTIONS = ("update", "sync", "skip_bad")


class UploadForm(forms.Form):
    """A file or pasted text, and options; ``sync`` needs the permission to operate the rows."""

    text = forms.CharField(
        label=gettext_lazy("Paste"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80, "spellcheck": "false", "autocomplete": "off"}),
    )
    file = forms.FileField(label=gettext_lazy("or a file"), required=False)
    update = forms.BooleanField(
        label=gettext_lazy("Update existing rows with the values in the file"), required=False
    )
    sync = forms.BooleanField(
        label=gettext_lazy("Sync: retire rows that are not in the file, and return retired ones that are"),
        required=False,
    )
    skip_bad = forms.BooleanField(label=gettext_lazy("Skip bad lines and import the others"), required=False)

    def __init__(self, *args: Any, importer: Importer, may_operate: bool) -> None:
        super().__init__(*args)
        self.fields["text"].help_text = importer.help % {"columns": ", ".join(importer.columns)}
        if not may_operate:
            sync = self.fields["sync"]
            sync.disabled = True  # Django then ignores a submitted value
            sync.help_text = _("You need the permission to operate these rows for this.")

    def clean(self) -> dict[str, Any]:
        """Add ``content``, the bytes to import, and ``name``, what they are called."""
        cleaned: dict[str, Any] = super().clean() or {}
        file, text = cleaned.get("file"), cleaned.get("text", "")
        if self.errors:
            return cleaned
        if not file and not text.strip():
            raise forms.ValidationError({"file": _("Paste something, or choose a file.")})
        if file and text.strip():
            raise forms.ValidationError({"file": _("Paste something or choose a file, not both.")})
        if (file.size if file else len(text.encode(errors="replace"))) > MAX_FILE_BYTES:
            message = _("At most 1 MB here; for larger files use manage.py resourcepool_import.")
            raise forms.ValidationError({"file": message})
        content = file.read(MAX_FILE_BYTES + 1) if file else text.encode(errors="replace")
        name = "".join(c for c in file.name if c.isprintable())[:100] if file else str(PASTED)
        return {**cleaned, "content": content, "name": name}


class ImportMixin(ResourceOperationsMixin):
    """Adds the import to the list of resources, for users who may add and change them."""

    importer: ClassVar[type[Importer]] = Importer

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
        posted = (request.POST, request.FILES) if request.method == "POST" else ()
        may_operate = self.has_operate_permission(request)
        form = UploadForm(*posted, importer=self.importer(self.model), may_operate=may_operate)
        if form.is_valid():
            return self._show_plan(request, form)
        return self._render(request, form=form)

    def _show_plan(self, request: HttpRequest, form: UploadForm) -> HttpResponse:
        importer = self.importer(self.model)
        content, name = form.cleaned_data["content"], form.cleaned_data["name"]
        options = {option: form.cleaned_data[option] for option in OPTIONS}
        try:
            # Bad lines are shown among the others.
            plan = self._run(content, name, {**options, "skip_bad": True}, dry_run=True)
            token = pack(content, name, options, request.user.pk, is_secret=bool(importer.secrets))
        except ResourcePoolError as error:
            form.add_error("file", error_lines(error))
            return self._render(request, form=form)
        wrong = 0 if options["skip_bad"] else plan.bad_count
        plan.bad_count -= wrong  # they are not skipped
        lines = sentences(self.model, plan, dry_run=True, sync=options["sync"])
        if wrong:
            lines.append(_("%d wrong: correct them, or skip them. Nothing can be imported yet.") % wrong)
        return self._render(
            request, plan=plan, sentences=lines, sealed="" if wrong else token, name=name, **options
        )

    def _import(self, request: HttpRequest) -> HttpResponse:
        is_secret = bool(self.importer(self.model).secrets)
        try:
            content, name, options = unpack(request.POST["sealed"], request.user.pk, is_secret=is_secret)
            if options["sync"] and not self.has_operate_permission(request):
                raise PermissionDenied  # revoked since the plan was made
            result = self._run(content, name, options, actor=request.user.get_username())
        except ResourcePoolError as error:
            for line in error_lines(error):
                self.message_user(request, line, messages.ERROR)
            return HttpResponseRedirect(self.page_url("import"))
        text = f"{name}: {' '.join(sentences(self.model, result, dry_run=False, sync=options['sync']))}"
        LogEntry.objects.create(  # one entry, not one for each of 20,000 proxies
            user_id=str(request.user.pk),
            content_type=ContentType.objects.get_for_model(self.model, for_concrete_model=False),
            object_repr=_("import of %s") % name,
            action_flag=CHANGE,
            change_message=text,
        )
        self.message_user(request, text, messages.SUCCESS)
        return HttpResponseRedirect(self.page_url("changelist"))

    def _run(self, content: bytes, name: str, options: Any, **more: Any) -> ImportResult:
        importer = self.importer(self.model)
        return importer.run(name, **options, **more, stream=io.BytesIO(content), compare_secrets=False)

    def _render(self, request: HttpRequest, **context: Any) -> HttpResponse:
        title = _("Import %s") % self.opts.verbose_name_plural
        return self.render_page(request, "resourcepool/admin/import.html", title, **context)


def error_lines(error: ResourcePoolError) -> list[str]:
    """Return the messages of ``error``, one per bad line."""
    if isinstance(error, BadLines):
        return localized(format_bad_lines(error.bad, error.bad_count)).splitlines()
    return [localized(error)]


def pack(content: bytes, name: str, options: dict[str, bool], user: Any, *, is_secret: bool = True) -> str:
    """Return a file and the options as text for the form that asks for confirmation.

    Args:
        is_secret: encrypt it; otherwise it is only signed.

    Raises:
        SecretUnreadable: no key is configured.
    """
    plan = {"content": content.decode("latin-1"), "name": name, "options": options}
    text = signing.dumps(plan, salt=f"{PLAN_PURPOSE[0]} {user}", compress=True)
    return encrypt(text, PLAN_PURPOSE).token if is_secret else text


def unpack(token: str, user: Any, *, is_secret: bool = True) -> tuple[bytes, str, dict[str, bool]]:
    """Return the file and options that the same user packed within the last hour.

    Raises:
        SecretUnreadable: the token is invalid, another user's, or too old.
    """
    text = EncryptedSecret(token).open(PLAN_PURPOSE) if is_secret else token
    try:
        plan = signing.loads(text, salt=f"{PLAN_PURPOSE[0]} {user}", max_age=PLAN_SECONDS)
    except signing.BadSignature as error:
        why = _("This plan is more than an hour old, another user's, or invalid. Upload the file again.")
        raise SecretUnreadable(why) from error
    return plan["content"].encode("latin-1"), plan["name"], plan["options"]

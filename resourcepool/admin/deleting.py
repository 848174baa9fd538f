"""Deleting resources: what is said and logged is what became of each, which nobody knows before it is done."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.actions import delete_selected as ask_first
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import model_ngettext
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from resourcepool.admin.operated import Operated
from resourcepool.resources.choice import everything

CHUNK = 500  # as many as a queryset deletes in one transaction


class Deleting(Operated):
    """Deletes those that are free; those that are held are retired instead."""

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions, with a deletion that says what it did in place of Django's."""
        found: Any = super().get_actions(request)
        if "delete_selected" in found:
            found["delete_selected"] = (delete_selected, *found["delete_selected"][1:])
        return found

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Write nothing down yet: Django asks for it before it deletes anything."""
        return []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete one, or say that it was held."""
        self.delete_queryset(request, type(obj)._default_manager.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete those that are free, and say how many these were and how many were held."""
        chosen, deleted, held = list(queryset), 0, 0
        for start in range(0, len(chosen), CHUNK):
            rows = chosen[start : start + CHUNK]
            kept = self._delete(request, queryset.model, rows)
            held, deleted = held + kept, deleted + len(rows) - kept
        if deleted:
            text = _("Successfully deleted %(count)d %(items)s.")
            said = {"count": deleted, "items": model_ngettext(self.opts, deleted)}
            self.message_user(request, text % said, messages.SUCCESS)
        if held:
            text = _("%(count)d held: retired instead, their holders are not disturbed. Delete again later.")
            self.message_user(request, text % {"count": held}, messages.WARNING)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        """Go back to where one came from; what became of it has been said."""
        to_field = request.POST.get(TO_FIELD_VAR, request.GET.get(TO_FIELD_VAR))
        if IS_POPUP_VAR in request.POST and self.get_object(request, str(obj_id), to_field) is None:
            return super().response_delete(request, obj_display, obj_id)
        if self.has_view_or_change_permission(request):
            filters: Any = {"preserved_filters": self.get_preserved_filters(request), "opts": self.opts}
            return HttpResponseRedirect(add_preserved_filters(filters, self.url_of("changelist")))
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))

    def _delete(self, request: HttpRequest, model: Any, rows: list[Any]) -> int:
        """Delete those of ``rows`` that are free, and log what became of all; returns how many were held."""
        user: Any = request.user
        those = everything(model).filter(pk__in=[row.pk for row in rows])
        those.all().delete(actor=user.get_username())
        left = set(those.values_list("pk", flat=True))
        kept: Any = [row for row in rows if row.pk in left]
        gone: Any = [row for row in rows if row.pk not in left]
        LogEntry.objects.log_actions(user.pk, gone, DELETION)
        LogEntry.objects.log_actions(user.pk, kept, CHANGE, _("Retired, because it was held"))
        return len(kept)


def delete_selected(page: Any, request: HttpRequest, queryset: Any) -> HttpResponse | None:
    """Ask as Django does; then delete, and leave it to the page to say what became of each."""
    if request.POST.get("post"):
        *_shown, perms_needed, protected = page.get_deleted_objects(queryset, request)
        if perms_needed:
            raise PermissionDenied
        if not protected:
            page.delete_queryset(request, queryset)
            return None
    return ask_first(page, request, queryset)

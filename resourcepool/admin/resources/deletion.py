"""Deleting resources: what is said and logged is what became of each, which nobody knows before it is done."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.actions import delete_selected as ask_first
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import model_ngettext
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.events import localized
from resourcepool.exceptions import RowLocked
from resourcepool.resources.registry import all_resources
from resourcepool.resources.state import Status

CHUNK = 500  # as many as a queryset deletes in one transaction


class DeletionMixin(OperationsAdminMixin):
    """Deletes those that are free; those that are held are retired instead."""

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions, with a deletion that says what it did in place of Django's."""
        found: Any = super().get_actions(request)
        if "delete_selected" in found:
            found["delete_selected"] = (delete_selected, *found["delete_selected"][1:])
        return found

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what Django asks about, and how many of it are held: these stay."""
        listed, *others = super().get_deleted_objects(objs, request)
        rows: Any = objs
        if not isinstance(objs, QuerySet):
            rows = all_resources(self.model).filter(pk__in=[one.pk for one in objs])
        if held := rows.held().count():
            text = ngettext(
                "%(count)d of these is held now: it is retired instead, and its holder is not disturbed.",
                "%(count)d of these are held now: they are retired instead, and their holders are not disturbed.",
                held,
            )
            listed = [*listed, text % {"count": held}]
        return (listed, *others)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Log nothing yet: Django calls this before it deletes."""
        return []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_queryset(request, type(obj)._default_manager.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete those that are free, and say how many these were and how many were held."""
        chosen, deleted, held = list(queryset), 0, 0
        for start in range(0, len(chosen), CHUNK):
            gone, kept = self._delete(request, queryset.model, chosen[start : start + CHUNK])
            held, deleted = held + kept, deleted + gone
        if deleted:
            text = _("Successfully deleted %(count)d %(items)s.")
            said = {"count": deleted, "items": model_ngettext(self.opts, deleted)}
            self.message_user(request, text % said, messages.SUCCESS)
        if held:
            text = ngettext(
                "%(count)d is held: retired instead, its holder is not disturbed. Delete it again later.",
                "%(count)d are held: retired instead, their holders are not disturbed. Delete them again later.",
                held,
            )
            self.message_user(request, text % {"count": held}, messages.WARNING)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        """Go back to the list; a message has reported the result."""
        to_field = request.POST.get(TO_FIELD_VAR, request.GET.get(TO_FIELD_VAR))
        if IS_POPUP_VAR in request.POST and self.get_object(request, str(obj_id), to_field) is None:
            return super().response_delete(request, obj_display, obj_id)
        if self.has_view_or_change_permission(request):
            filters: Any = {"preserved_filters": self.get_preserved_filters(request), "opts": self.opts}
            return HttpResponseRedirect(add_preserved_filters(filters, self.page_url("changelist")))
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))

    def _delete(self, request: HttpRequest, model: Any, rows: list[Any]) -> tuple[int, int]:
        """Delete those of ``rows`` that are free, and log what became of all; returns how many are gone, and were held.

        Of what somebody's transaction keeps locked it only says so.
        """
        user: Any = request.user
        those = all_resources(model).filter(pk__in=[row.pk for row in rows])
        try:
            those.all().delete(actor=user.get_username())
        except RowLocked as error:
            self.message_user(request, localized(error), messages.ERROR)
        left = dict(those.values_list("pk", "status"))
        kept: Any = [row for row in rows if left.get(row.pk) == Status.RETIRED]
        gone: Any = [row for row in rows if row.pk not in left]
        LogEntry.objects.log_actions(user.pk, gone, DELETION)
        LogEntry.objects.log_actions(user.pk, kept, CHANGE, _("Retired, because it was held"))
        return len(gone), len(kept)


def delete_selected(page: Any, request: HttpRequest, queryset: Any) -> HttpResponse | None:
    """Ask as Django does, then delete; the page reports the result."""
    if request.POST.get("post"):
        *_shown, perms_needed, protected = page.get_deleted_objects(queryset, request)
        if perms_needed:
            raise PermissionDenied
        if not protected:
            page.delete_queryset(request, queryset)
            return None
    return ask_first(page, request, queryset)

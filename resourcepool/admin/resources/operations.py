"""Operations on resources, and their deletion.

Messages and log entries follow a deletion, because only then the result is known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.actions import delete_selected as ask_first
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR, TO_FIELD_VAR
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import model_ngettext
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from resourcepool.admin.columns import key_and_name
from resourcepool.admin.operations_mixin import SHOWN, OperationsAdminMixin, Selection
from resourcepool.db.rows import batched
from resourcepool.events import localized
from resourcepool.exceptions import RowLocked
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.registry import all_resources
from resourcepool.resources.state import Status, state_of
from resourcepool.translation import gettext as _, ngettext

DELETED_AT_ONCE = 500  # rows that a queryset deletes in one transaction
MAX_GRANTS = 200  # listed one by one in the form
CHUNK = 500  # rows that a queryset changes in one transaction


@dataclass(frozen=True, kw_only=True)
class Grants(Selection):
    """The chosen resources.

    Attributes:
        grants: (primary key, fence) of each.
        held: how many of them are held.
    """

    model: Any
    grants: list[tuple[Any, int]]
    held: int

    @classmethod
    def of(cls, rows: Any, most: int) -> "Grants":
        """Read up to ``most`` of ``rows``, which are annotated with ``db_now``."""
        columns = rows.values_list("pk", "fence", "holder", "busy_before", "db_now")
        values = list(columns[: most + 1])
        grants = [(pk, fence) for pk, fence, *_ in values[:most]]
        return cls(
            model=rows.model,
            grants=grants,
            held=sum(1 for _, _, holder, busy_before, now in values[:most] if holder and busy_before > now),
            rows=list(rows[: min(SHOWN, most)]),
            count=len(grants),
            is_cut=len(values) > most,
        )

    @property
    def form_grants(self) -> list[str]:
        """The grants as "pk:fence", so that the form cannot hit a later lease; empty if there are too many."""
        return [f"{pk}:{fence}" for pk, fence in self.grants] if len(self.grants) <= MAX_GRANTS else []

    def chunks(self, seen: Iterable[str] = ()) -> Iterator[Any]:
        """Yield querysets over the rows; with ``seen`` ("pk:fence"), only over rows that still have that fence."""
        rows = ResourceQuerySet(model=self.model, using=self.model.pool.using)
        if grants := set(seen):
            conditions = [Q(pk=pk, fence=fence) for pk, fence in self.grants if f"{pk}:{fence}" in grants]
            for start in range(0, len(conditions), MAX_GRANTS):
                yield rows.filter(Q(*conditions[start : start + MAX_GRANTS], _connector=Q.OR))
            return
        pks = [pk for pk, _ in self.grants]
        for start in range(0, len(pks), CHUNK):
            yield rows.filter(pk__in=pks[start : start + CHUNK])


class ResourceOperationsMixin(OperationsAdminMixin):
    """Runs operations on resources, for users with ``operate_<model>`` who may also view the list."""

    operations = OPERATIONS

    def can_offer(self, operation: Operation, row: Any) -> bool:
        return state_of(row, row.db_now) in operation.states and operation.is_offered(row)

    def select_rows(self, rows: Any, operation: Operation) -> Grants:
        return Grants.of(rows, operation.max_rows)

    def confirmation_context(
        self, request: HttpRequest, chosen: Grants, operation: Operation
    ) -> dict[str, Any]:
        """See ``OperationsAdminMixin``; the form keeps the grants of its first page when it is shown again."""
        seen = request.POST.getlist("grant") or chosen.form_grants
        return super().confirmation_context(request, chosen, operation) | {"held": chosen.held, "seen": seen}

    def display_name(self, row: Any) -> str:
        return format_html("{} {} {}", key_and_name(row), self.state(row), row.holder)

    def parts(self, request: HttpRequest, chosen: Grants, operation: Operation) -> Iterable[Any]:
        return chosen.chunks(request.POST.getlist("grant") if operation.for_current_lease else [])

    def logged_values(self, entered: dict[str, Any]) -> str:
        return str(entered.get("reason", ""))

    def state(self, resource: Any) -> str:
        raise NotImplementedError


class DeletionMixin(OperationsAdminMixin):
    """Deletes free resources and retires held ones."""

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions, with Django's deletion replaced by one that reports its result."""
        actions: Any = super().get_actions(request)
        if "delete_selected" in actions:
            actions["delete_selected"] = (delete_selected, *actions["delete_selected"][1:])
        return actions

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what Django lists, and the number of held resources, which are retired instead."""
        listed, *others = super().get_deleted_objects(objs, request)
        rows: Any = objs
        if not isinstance(objs, QuerySet):
            rows = all_resources(self.model).filter(pk__in=[obj.pk for obj in objs])
        if held := rows.held().count():
            text = ngettext(
                "%(count)d of these is held. It will be retired instead; its holder is not disturbed.",
                "%(count)d of these are held. They will be retired instead; their holders are not disturbed.",
                held,
            )
            listed = [*listed, text % {"count": held}]
        return (listed, *others)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Log nothing: Django calls this before it deletes."""
        return []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_queryset(request, type(obj)._default_manager.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete free resources and retire held ones; messages count both."""
        chosen, deleted, retired = list(queryset), 0, 0
        for chunk in batched(chosen, DELETED_AT_ONCE):
            deleted_now, retired_now = self._delete(request, queryset.model, chunk)
            deleted, retired = deleted + deleted_now, retired + retired_now
        if deleted:
            text = _("Successfully deleted %(count)d %(items)s.")
            values = {"count": deleted, "items": model_ngettext(self.opts, deleted)}
            self.message_user(request, text % values, messages.SUCCESS)
        if retired:
            text = ngettext(
                "%(count)d held resource was retired instead; its holder is not disturbed. Delete it again later.",
                "%(count)d held resources were retired instead; their holders are not disturbed."
                " Delete them again later.",
                retired,
            )
            self.message_user(request, text % {"count": retired}, messages.WARNING)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        """Return to the list; a message has reported the result."""
        to_field = request.POST.get(TO_FIELD_VAR, request.GET.get(TO_FIELD_VAR))
        if IS_POPUP_VAR in request.POST and self.get_object(request, str(obj_id), to_field) is None:
            return super().response_delete(request, obj_display, obj_id)
        if self.has_view_or_change_permission(request):
            filters: Any = {"preserved_filters": self.get_preserved_filters(request), "opts": self.opts}
            return HttpResponseRedirect(add_preserved_filters(filters, self.page_url("changelist")))
        return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))

    def _delete(self, request: HttpRequest, model: Any, rows: list[Any]) -> tuple[int, int]:
        """Delete or retire ``rows`` and log each result; a message reports locked rows.

        Returns:
            How many were deleted, and how many retired.
        """
        user: Any = request.user
        targets = all_resources(model).filter(pk__in=[row.pk for row in rows])
        try:
            targets.all().delete(actor=user.get_username())
        except RowLocked as error:
            self.message_user(request, localized(error), messages.ERROR)
        statuses = dict(targets.values_list("pk", "status"))
        retired: Any = [row for row in rows if statuses.get(row.pk) == Status.RETIRED]
        deleted: Any = [row for row in rows if row.pk not in statuses]
        LogEntry.objects.log_actions(user.pk, deleted, DELETION)
        LogEntry.objects.log_actions(user.pk, retired, CHANGE, _("Retired because it was held"))
        return len(deleted), len(retired)


def delete_selected(page: Any, request: HttpRequest, queryset: Any) -> HttpResponse | None:
    """Confirm as Django does, then delete; messages report the result."""
    if request.POST.get("post"):
        *_shown, perms_needed, protected = page.get_deleted_objects(queryset, request)
        if perms_needed:
            raise PermissionDenied
        if not protected:
            page.delete_queryset(request, queryset)
            return None
    return ask_first(page, request, queryset)

"""What the pages of streams, dispensers and topics have in common: settings, a history, and work with its own list."""

from typing import Any, ClassVar

from django.db import router
from django.db.models import BooleanField, Exists, OuterRef, QuerySet, Value
from django.http import HttpRequest
from django.utils.translation import gettext

from resourcepool.admin.queues.links import to_list
from resourcepool.admin.streams.asking import AskingByRows
from resourcepool.admin.timeline import Timelined
from resourcepool.dashboard.access import may_view
from resourcepool.signals import Fact, What, tell


class PlaceAdmin(Timelined, AskingByRows):
    """Settings are edited; the work has a list of its own."""

    settings: ClassVar[tuple[str, ...]]
    work: ClassVar[Any]  # the model of its tasks or timers
    read: ClassVar[Any]  # tells how those of these names stand

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write only what was edited: programs write the rest while the form is open."""
        edited = [name for name in form.changed_data if name in self.settings]
        if not change:
            super().save_model(request, obj, form, change)
        elif edited:
            obj.save(update_fields=edited)
        if change and "is_paused" in edited:
            what, fence = What.PAUSED if obj.is_paused else What.RESUMED, getattr(obj, "fence", 0)
            tell(Fact(what, self.model, obj._state.db, obj.pk, fence, actor=request.user.get_username()))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows, each with whether the names and errors of its work may be shown."""
        tells = Value(may_view(self.admin_site, request, self.work), BooleanField())
        rows: QuerySet[Any] = super().get_queryset(request).annotate(tells_work=tells)
        return rows

    def note(self, rows: Any) -> None:
        """Read how each of these stands."""
        found = {one.name: one for one in self.read(*(row.name for row in rows))} if rows else {}
        for row in rows:
            status = found[row.name]
            row.status = status if getattr(row, "tells_work", False) else status.discreet()

    def status_of(self, row: Any) -> Any:
        """Return how it stands."""
        if not hasattr(row, "status"):
            self.note([row])
        return row.status

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what Django asks about; one that has work is not deleted, and it may be too much to be listed."""
        rows = self.model.objects.using(router.db_for_write(self.model)).filter(pk__in=[one.pk for one in objs])
        column = self.work.named_by[0]
        used = rows.filter(Exists(self.work.objects.filter(**{column: OuterRef("pk")})))
        if kept := [self._has_work(name, column) for name in used.values_list("pk", flat=True)]:
            return [], {}, set(), kept
        return super().get_deleted_objects(objs, request)

    def _has_work(self, name: str, column: str) -> str:
        told = {"name": name, "work": self.work._meta.verbose_name_plural}
        text, wanted = gettext("%(name)s has %(work)s") % told, {column.removesuffix("_id"): name}
        return to_list(self.admin_site, self.work, text, **wanted)

"""A read-only list and page for each system whose model has no admin page of its own."""

from typing import Any, ClassVar

from django.contrib import admin

from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.status.registry import named_systems
from resourcepool.status.system import Figure, NamedSystem, figure_text


class SystemAdmin(ReadOnlyAdmin):
    """The rows of a system, by name, with the figures of their statuses."""

    system: ClassVar[NamedSystem]
    ordering = ("pk",)

    def load_column_values(self, rows: Any) -> None:
        names = [row.pk for row in rows]
        statuses = {status.name: status for status in self.system.reader.named(*names)} if names else {}
        for row in rows:
            row.status = statuses[row.pk]


def _column(number: int, figure: Figure) -> Any:
    def shown(row: Any) -> str:
        return figure_text(figure, row.status)

    shown.__name__ = f"figure_{number}"  # Django derives the CSS class from it
    return admin.display(description=figure.label)(shown)


def register(system: NamedSystem) -> None:
    """Register a page for the model of ``system`` that its app can unregister."""
    _name, *figures = [figure for figure in system.figures if figure.label]
    columns = (system.reader.model._meta.pk.name, *(_column(n, figure) for n, figure in enumerate(figures)))
    options = {"system": system, "list_display": columns, "fields": columns}
    admin.site.register(system.reader.model, type("SystemAdmin", (SystemAdmin,), options))


for each in named_systems().values():
    if not admin.site.is_registered(each.reader.model):
        register(each)

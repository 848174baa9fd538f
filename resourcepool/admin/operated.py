"""Pages on which one may do things: a permission of their own, and nothing is done inside a transaction of the page."""

from typing import Any

from django.contrib.auth import get_permission_codename
from django.db import connections, transaction
from django.http import HttpRequest
from django.urls import URLPattern, reverse

from resourcepool.admin.generic import Admin


class Operated(Admin):
    """For those who may see the list: whatever may be done besides takes a permission of its own, and that one.

    ``at_once``: the pages whose changes are seen by others at once, whatever ATOMIC_REQUESTS says.
    """

    at_once: tuple[str, ...] = ("changelist",)

    def has_operate_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may do here what no form does."""
        permission = f"{self.opts.app_label}.{get_permission_codename('operate', self.opts)}"
        return bool(request.user.has_perm(permission)) and self.has_view_or_change_permission(request, obj)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Tell whether this user may add rows: only with those may one that can see them, too."""
        return super().has_add_permission(request, *args) and self.has_view_or_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may delete what is on the list, which must be seen for that."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and self.has_view_or_change_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of the pages."""
        prefix = f"{self.opts.app_label}_{self.opts.model_name}_"
        urls: list[URLPattern] = [*self.own_urls(), *super().get_urls()]
        for url in urls:
            if url.name in {prefix + page for page in self.at_once}:
                for alias in connections:
                    transaction.non_atomic_requests(using=alias)(url.callback)
        return urls

    def own_urls(self) -> list[URLPattern]:
        """Return the addresses that come before Django's."""
        return []

    def url_of(self, page: str, *args: Any) -> str:
        """Return the URL of a page of this model."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

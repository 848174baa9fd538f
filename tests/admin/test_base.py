"""Hostile URLs neither break a list nor keep it busy."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.test import Client, RequestFactory

from resourcepool.admin import ResourceAdmin
from resourcepool.db.dialect import DbNow
from resourcepool.history.models import Dashboard
from resourcepool.models import Proxy
from tests.admin.conftest import event, sign_in
from tests.app.models import Device, Team
from tests.app.rows import change, new
from tests.case_sample import parts

LIST = "/admin/resourcepool/proxy/"
VALUES = [
    *("1", "", "(", "x", "9" * 19, "9" * 40, "9" * 5_000, "-1", "nan", "inf", "1e999", "99999", "True", "None"),
]
VALUES += [
    *("0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "2026-11-22", "2026-99-99", "{", "a,b", "\0"),
    "\U0001f600",
]
LOOKUPS = [
    *("regex", "iregex", "in", "year", "gt", "lt", "range", "contains", "isnull", "date", "week_day", "search"),
    "nonsense",
]

pytestmark = pytest.mark.django_db


def lists() -> list[Any]:
    """Return the models of this app that have a list."""
    return [
        model
        for model in apps.get_app_config("resourcepool").get_models()
        if admin.site.is_registered(model) and model is not Dashboard
    ]


def address(model: Any) -> str:
    return f"/admin/{model._meta.app_label}/{model._meta.model_name}/"


@pytest.fixture
def client() -> Client:
    found = sign_in("superuser")
    found.raise_request_exception = False
    return found


def test_a_regular_expression_is_refused_without_a_query(viewer: Client, proxy: Proxy) -> None:
    change(proxy, holder="a" * 40)
    for lookup in ("holder__regex", "holder__iregex", "notes__regex"):
        assert viewer.get(LIST, {lookup: r"^(.+)+\x01"}).status_code == 400


def telling_fields(model: Any) -> list[Any]:
    """Return the fields with a filter, and one of each other type, because Django treats those alike."""
    filters: Any = admin.site._registry[model].list_filter
    filtered = {one if isinstance(one, str) else getattr(one, "parameter_name", one) for one in filters}
    kinds = {type(field): field for field in model._meta.concrete_fields}
    return [field for field in model._meta.concrete_fields if field.name in filtered or field in kinds.values()]


@pytest.mark.parametrize("model", lists(), ids=lambda model: model.__name__)
def test_a_list_accepts_only_columns_compared_for_equality(model: Any, client: Client) -> None:
    if model is Proxy:
        event(new(Proxy))
    telling = telling_fields(model)
    for field, lookups, values in zip(model._meta.concrete_fields, parts(LOOKUPS), parts(VALUES), strict=False):
        for lookup in lookups if field in telling else LOOKUPS[:1]:
            if f"{field.name}__{lookup}" != "state__isnull":  # used by a filter of the list of servers
                answer = client.get(address(model), {f"{field.name}__{lookup}": "1"})
                assert answer.status_code == 400, (field, lookup)
        for value in values if field in telling else VALUES[:1]:
            answer = client.get(address(model), {f"{field.name}{'__exact' * (value == '1')}": value})
            assert answer.status_code in {200, 400}, (field, value)
    assert client.get(address(model), {"nonsense": "1"}).status_code == 400


def test_rows_are_found_by_the_value_of_a_column(viewer: Client) -> None:
    one, _ = new(Proxy, port=80, checked_at=DbNow()), new(Proxy, port=81)
    for query in ({"port": 80}, {"port__exact": 80}, {"id": one.pk}, {"host": one.host}):
        assert [row.pk for row in viewer.get(LIST, query).context["cl"].result_list] == [one.pk]


def test_a_password_cannot_be_queried(viewer: Client) -> None:
    assert [viewer.get(LIST, {name: "x"}).status_code for name in ("password", "password__isnull")] == [
        400,
        400,
    ]


class TestCustomFilters:
    """A custom list may have any filter of Django."""

    class DeviceAdmin(ResourceAdmin):
        list_filter = (
            "kind",
            "is_rooted",
            "bought_on",
            "owner",
            ("name", admin.AllValuesFieldListFilter),
            "owner__name",
        )

    @pytest.mark.parametrize(
        "query",
        [
            {"kind__exact": "phone"},
            {"is_rooted__exact": "0"},
            {"bought_on__gte": "2026-01-01", "bought_on__lt": "2026-02-01"},
            {"bought_on__isnull": "True"},
            {"owner__id__exact": "1"},
            {"owner__isnull": "True"},
            {"name": "x"},
            {"owner__name": "x"},
        ],
    )
    def test_their_lookups_are_allowed(self, query: dict[str, str]) -> None:
        assert self.list(query) is not None

    @pytest.mark.parametrize(
        "query", [{"name__regex": "("}, {"owner__name__regex": "("}, {"kind__in": "phone"}]
    )
    def test_other_lookups_are_refused(self, query: dict[str, str]) -> None:
        with pytest.raises(SuspiciousOperation):
            self.list(query)

    def list(self, query: dict[str, str]) -> Any:
        Team.objects.create(name="blue")
        page = self.DeviceAdmin(Device, admin.site)
        request = RequestFactory().get(f"/?{urlencode(query)}")
        request.user = User(is_superuser=True, is_active=True)
        return list(page.get_changelist_instance(request).queryset)

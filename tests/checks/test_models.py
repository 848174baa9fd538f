"""Checks of models and classes."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection, models
from django.test.utils import isolate_apps

from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.models import AbstractResource, Proxy
from resourcepool.resources import registry
from resourcepool.resources.resource import Resource
from resourcepool.resources.selectors import selectable


def crawler(**times: Any) -> type[Resource]:
    return type("Crawler", (Resource,), {"__module__": __name__, "model": Proxy, **times})


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"occupation_delta": 60, "occupation_interval": 21}, "occupation_interval=21 is not allowed"),
        (
            {"occupation_delta": timedelta(seconds=1)},
            "occupation_interval=datetime.timedelta(seconds=30) is not",
        ),
        ({"occupation_delta": 0}, "occupation_delta=0 is not allowed"),
    ],
)
def test_a_thread_class_without_room_for_three_renewals(
    times: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "Crawler", crawler(**times), raising=False)
    (message,) = run_checks(tags=["resourcepool"])
    assert (message.id, message.obj) == ("resourcepool.E003", f"{__name__}.Crawler")
    assert message.msg.startswith(said)


def test_three_renewals_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    made = crawler(occupation_delta=60, occupation_interval=20)
    monkeypatch.setattr(sys.modules[__name__], "Crawler", made, raising=False)
    assert run_checks(tags=["resourcepool"]) == []


def test_a_class_that_cannot_be_imported_is_ignored() -> None:
    made = crawler(occupation_delta=1)
    assert made in Resource.__subclasses__()
    assert run_checks(tags=["resourcepool"]) == []


def test_a_model_without_operator_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, lacking in (((), "operate, lease, quarantine"), (("operate",), "lease, quarantine")):
        monkeypatch.setattr(Proxy._meta, "default_permissions", ("add", "change", "delete", "view", *given))
        (message,) = run_checks(tags=["resourcepool"])
        assert (message.id, message.obj) == ("resourcepool.W025", Proxy)
        assert lacking in message.msg


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A leased model and its descendants, registered only for this test."""
    with isolate_apps("tests.app") as known:

        class Phone(AbstractResource):
            class Meta(AbstractResource.Meta):
                app_label = "testapp"

        class SmartPhone(Phone):
            maker = models.CharField(max_length=10)

            class Meta:
                app_label = "testapp"

        class Loan(Phone):
            class Meta:
                app_label = "testapp"
                proxy = True

        class Thing(models.Model):
            name = models.CharField(max_length=10)

            class Meta:
                app_label = "testapp"

            def __str__(self) -> str:
                return self.name

        class Camera(Thing, AbstractResource):
            lens = models.CharField(max_length=10)

            class Meta(AbstractResource.Meta):
                app_label = "testapp"

            def __str__(self) -> str:
                return self.lens

        monkeypatch.setattr(registry, "apps", known)
        yield {"parent": Phone, "child": SmartPhone, "proxy": Loan, "mixed": Camera}


def test_a_model_that_inherits_its_leases_from_another_table(family: dict[str, Any]) -> None:
    (message,) = [one for one in run_checks(tags=["resourcepool"]) if one.id == "resourcepool.E011"]
    assert message.obj is family["child"]
    assert message.msg == "its leases are in the table of testapp.Phone, so its own pool cannot lease anything."
    assert "testapp.Phone.pool" in str(message.hint)


def test_using_a_model_that_inherits_its_leases_raises_a_clear_error(family: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=r"model='testapp.SmartPhone' is not allowed.*testapp.Phone"):
        family["child"].pool.acquire(wait=False)
    with pytest.raises(BadOption, match=r"model='testapp.SmartPhone' is not allowed.*testapp.Phone"):
        verbs.renew(connection, family["child"], [(1, 1)], 60)


def test_a_model_that_inherits_its_leases_is_not_a_pool(family: dict[str, Any]) -> None:
    assert registry.resource_models() == [family["mixed"], family["proxy"], family["parent"]]


def test_columns_of_another_table_are_not_selectors(family: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=r"name: no such selector; testapp.Camera has: .*\blens\b"):
        family["mixed"].pool.acquire(wait=False, name="red")
    assert "tags" in selectable(family["proxy"])

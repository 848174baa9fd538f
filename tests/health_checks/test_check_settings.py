"""RESOURCEPOOL["CHECKS"]: allowed and refused settings."""

from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.health_checks.checker import check_settings_of
from resourcepool.models import Proxy
from resourcepool.proxies.health_check.checker import ProxyChecker
from tests.app.models import Device
from tests.health_checks.scripted_checker import ScriptedChecker

SCRIPTED = f"{ScriptedChecker.__module__}.ScriptedChecker"
URL = {"url": "http://target.test/"}


def choose(settings: Any, model: Any, chosen: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {model._meta.label: chosen}}


def test_proxies_have_a_checker_of_ours(settings: Any) -> None:
    choose(settings, Proxy, URL)
    rules = check_settings_of(Proxy)
    assert type(rules.checker) is ProxyChecker
    assert (rules.every, rules.at_once, rules.suspicious, rules.checker.timeout) == (600, 20, 5, 10)


def test_a_checker_of_the_projects_own(settings: Any) -> None:
    choose(settings, Device, {"checker": SCRIPTED, "every": 30, "at_once": 2, "timeout": 1})
    rules = check_settings_of(Device)
    assert type(rules.checker) is ScriptedChecker
    assert (rules.every, rules.at_once, rules.checker.timeout) == (30, 2, 1)


@pytest.mark.parametrize(
    ("model", "chosen", "named"),
    [
        (Proxy, None, ": no checker is configured"),
        (Proxy, "http://target.test/", "a dict"),
        (Proxy, {}, "url"),
        (Proxy, {**URL, "every": 5}, "every"),
        (Proxy, {**URL, "at_once": 0}, "at_once"),
        (Proxy, {**URL, "suspicious": "5"}, "suspicious"),
        (Proxy, {**URL, "timeout": 0}, "timeout"),
        (Proxy, {**URL, "ulr": 1}, "ulr"),
        (Proxy, {**URL, "checker": "nowhere.at.All"}, "checker"),
        (Proxy, {**URL, "checker": "resourcepool.models.Proxy"}, "checker"),
        (Proxy, {**URL, "checker": 5}, "checker"),
        (Proxy, {"url": "ftp://x/"}, r"\['url'\]"),
        (Device, {}, "checker"),
    ],
)
def test_what_is_wrong_is_named(settings: Any, model: Any, chosen: Any, named: str) -> None:
    choose(settings, model, chosen)
    with pytest.raises(BadOption, match=named) as refused:
        check_settings_of(model)
    assert f"CHECKS'][{model._meta.label!r}]" in str(refused.value)

"""System checks report invalid settings before anything is leased."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from resourcepool.conf import DEFAULTS, pool_setting, setting
from resourcepool.exceptions import BadOption

PROXY = "resourcepool.Proxy"


def found(chosen: Any) -> list[tuple[str, str, str]]:
    """Return (id, message, hint) of the check messages for these settings."""
    with override_settings(RESOURCEPOOL=chosen):
        return [(error.id, error.msg, error.hint or "") for error in run_checks(tags=["resourcepool"])]


def test_the_defaults_are_fine() -> None:
    assert found({}) == []
    assert found(DEFAULTS) == []


def test_settings_of_a_pool_are_fine() -> None:
    assert found({"POOLS": {"resourcepool.Proxy": {"ttl": 30, "max_hold": None}, "testapp.Device": {}}}) == []


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([], "RESOURCEPOOL is not a dict."),
        ({"TTL": 0}, "RESOURCEPOOL['TTL']: ttl=0 is not allowed: it must be seconds or a timedelta"),
        ({"TTL": 10**400}, "RESOURCEPOOL['TTL']"),
        ({"STRATEGY": "fair"}, "RESOURCEPOOL['STRATEGY']: strategy='fair' is not allowed: it must be one of"),
        ({"QUARANTINE": {"base": -1}}, "RESOURCEPOOL['QUARANTINE']['base']=-1 is not allowed"),
        ({"QUARANTINE": {7: 1, "bse": 1}}, "RESOURCEPOOL['QUARANTINE']=[7, 'bse'] is not"),
        ({"CHECKS": []}, "RESOURCEPOOL['CHECKS']: it must be a dict, not a list"),
        ({"CHECKS": {PROXY: {"url": "ftp://x"}}}, f"['CHECKS']['{PROXY}']['url']='ftp://...' is not allowed"),
        ({"CHECKS": {PROXY: {7: 1, "url": "http://x/"}}}, "keywords must be strings"),
        ({"POOLS": []}, "RESOURCEPOOL['POOLS']: it must be a dict, not a list"),
        ({"POOLS": {PROXY: 30}}, f"['{PROXY}'] is not a dict."),
        ({"POOLS": {PROXY: {"ttl": "1"}}}, "['ttl']: ttl='1' is not allowed"),
        ({"NODE_LABELS": {"zone": 1}}, "RESOURCEPOOL['NODE_LABELS']={'zone': 1} is not allowed"),
        ({"NODE_VERSION": 2}, "RESOURCEPOOL['NODE_VERSION']=2 is not allowed"),
        ({"REST_LIMITS": []}, "RESOURCEPOOL['REST_LIMITS']: it must be a dict, not a list"),
        ({"REST_LIMITS": {PROXY: {"lease": 1}}}, "no other keys than ttl, cooldown, max_hold, leases"),
        ({"REST_LIMITS": {"resourcepool.Lock": {"ttl": 0}}}, "['resourcepool.Lock']['ttl']=0 is"),
        ({"REST_LIMITS": {PROXY: {"leases": -1}}}, "['leases']=-1 is not allowed"),
        ({"REST_WAITS": -1}, "RESOURCEPOOL['REST_WAITS']=-1 is not allowed"),
        ({"TICKET_TTL": "x"}, "RESOURCEPOOL['TICKET_TTL']='x' is not allowed"),
        ({"TICKET_TTL": [6]}, "RESOURCEPOOL['TICKET_TTL']=[6] is not allowed"),
        ({"HISTORY": 1}, "RESOURCEPOOL['HISTORY']: history=1 is not allowed: it must be True or False"),
        ({"HISTORY_KEPT": 1}, "RESOURCEPOOL['HISTORY_KEPT']=1 is not allowed"),
        ({"HISTORY_ROWS": "many"}, "RESOURCEPOOL['HISTORY_ROWS']='many' is not allowed"),
        ({"PREPARED_STATEMENTS": 0}, "RESOURCEPOOL['PREPARED_STATEMENTS']=0 is not allowed: it must be True"),
        ({"LEAK_AFTER": -1}, "RESOURCEPOOL['LEAK_AFTER']: leak_after=-1 is not allowed"),
        ({"ALARMS": {"sweep": "x"}}, "RESOURCEPOOL['ALARMS']['sweep']='x' is not allowed"),
        (
            {"ALARMS": {7: 1, "swep": 1}},
            "RESOURCEPOOL['ALARMS']=[7, 'swep'] is not allowed: the known names are",
        ),
        ({"SECRET_KEYS": ["abc"]}, "RESOURCEPOOL['SECRET_KEYS']='key 1' is not allowed: it must be 32 bytes"),
        ({"SECRET_KEYS": "abc"}, "RESOURCEPOOL['SECRET_KEYS']='str' is not allowed: it must be a list"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_setting(chosen: Any, message: str) -> None:
    ((code, said, _hint),) = found(chosen)
    assert code == "resourcepool.E001"
    assert message in said


@pytest.mark.parametrize(
    ("chosen", "code", "message", "hint"),
    [
        ({"TLL": 3}, "E001", "['TLL']: no such setting; did you mean 'TTL'?", "Known names: TTL, TIMEOUT"),
        ({"POOLS": {PROXY: {"size": 3}}}, "E001", "['size']: no such setting", "Known names: ttl, timeout"),
        ({"CHECKS": {"shop.Till": {}}}, "E002", "['CHECKS']['shop.Till']: no such resource model.", PROXY),
        ({"POOLS": {"shop.Till": {}}}, "E002", "['POOLS']['shop.Till']: no such resource model.", PROXY),
        ({"POOLS": {"testapp.Bare": {}}}, "E002", "no such resource model", f"Known models: {PROXY}"),
        ({"REST_LIMITS": {"shop.Till": {}}}, "E002", "no such resource model", "resourcepool.Lock"),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(
    chosen: Any, code: str, message: str, hint: str
) -> None:
    ((one, said, advice),) = found(chosen)
    assert one == f"resourcepool.{code}"
    assert message in said
    assert hint in advice


def test_settings_are_read_when_they_are_used() -> None:
    assert setting("TTL") == 60
    with override_settings(RESOURCEPOOL={"TTL": 5, "QUARANTINE": {"cap": 900}}):
        assert setting("TTL") == 5
        assert setting("QUARANTINE") == {"base": 300, "cap": 900}


@override_settings(RESOURCEPOOL={"POOLS": {"a.B": None}})
def test_pool_options_must_be_a_dict() -> None:
    with pytest.raises(BadOption, match=r"RESOURCEPOOL\['POOLS'\]\['a.B'\]=None .* a dict of options"):
        pool_setting("a.B", "ttl", {})


def test_settings_of_the_model_precede_its_attributes_and_those_the_defaults() -> None:
    pools = {"POOLS": {"a.B": {"ttl": 1}}, "TTL": 3}
    with override_settings(RESOURCEPOOL=pools):
        assert pool_setting("a.B", "ttl", {"ttl": 2}) == 1
        assert pool_setting("a.C", "ttl", {"ttl": 2}) == 2
        assert pool_setting("a.C", "ttl", {}) == 3


@pytest.mark.parametrize(
    ("chosen", "name"), [(7, "TTL"), ({"POOLS": []}, "POOLS"), ({"QUARANTINE": None}, "QUARANTINE")]
)
def test_a_setting_that_must_be_a_dict_is_refused_at_use(chosen: Any, name: str) -> None:
    with (
        override_settings(RESOURCEPOOL=chosen),
        pytest.raises(BadOption, match="it must be a dict, not a"),
    ):
        setting(name)

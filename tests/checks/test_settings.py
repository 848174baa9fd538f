"""System checks report invalid settings before anything is leased."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from resourcepool.conf import DEFAULTS, pool_setting, setting
from resourcepool.exceptions import BadOption


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
    ("chosen", "identity", "message", "hint"),
    [
        ([], "E001", "RESOURCEPOOL is not a dict.", ""),
        (
            {"TLL": 3},
            "E001",
            "RESOURCEPOOL['TLL']: no such setting; did you mean 'TTL'?",
            "Known names: TTL, TIMEOUT",
        ),
        (
            {"TTL": 0},
            "E001",
            "RESOURCEPOOL['TTL']: ttl=0 is not allowed: it must be seconds or a timedelta",
            "",
        ),
        (
            {"STRATEGY": "fair"},
            "E001",
            "RESOURCEPOOL['STRATEGY']: strategy='fair' is not allowed: it must be one of",
            "",
        ),
        ({"QUARANTINE": {"base": -1}}, "E001", "RESOURCEPOOL['QUARANTINE']['base']=-1 is not allowed", ""),
        ({"CHECKS": []}, "E001", "RESOURCEPOOL['CHECKS']: it must be a dict, not a list", ""),
        (
            {"CHECKS": {"shop.Till": {}}},
            "E002",
            "RESOURCEPOOL['CHECKS']['shop.Till']: no such resource model.",
            "Known models: ",
        ),
        (
            {"CHECKS": {"resourcepool.Proxy": {"url": "ftp://x"}}},
            "E001",
            "RESOURCEPOOL['CHECKS']['resourcepool.Proxy']['url']='ftp://...' is not allowed",
            "",
        ),
        (
            {"POOLS": {"shop.Till": {}}},
            "E002",
            "RESOURCEPOOL['POOLS']['shop.Till']: no such resource model.",
            "Known models: ",
        ),
        ({"POOLS": {"testapp.Bare": {}}}, "E002", "no such resource model", "resourcepool.Proxy"),
        ({"POOLS": {"resourcepool.Proxy": 30}}, "E001", "['resourcepool.Proxy'] is not a dict.", ""),
        (
            {"POOLS": {"resourcepool.Proxy": {"size": 3}}},
            "E001",
            "['resourcepool.Proxy']['size']: no such setting",
            "Known names: ttl, timeout",
        ),
        ({"NODE_LABELS": {"zone": 1}}, "E001", "RESOURCEPOOL['NODE_LABELS']={'zone': 1} is not allowed", ""),
        ({"NODE_VERSION": 2}, "E001", "RESOURCEPOOL['NODE_VERSION']=2 is not allowed", ""),
        ({"REST_LIMITS": []}, "E001", "RESOURCEPOOL['REST_LIMITS']: it must be a dict, not a list", ""),
        (
            {"REST_LIMITS": {"resourcepool.Proxy": {"lease": 1}}},
            "E001",
            "a dict with no other keys than ttl, cooldown, max_hold, leases",
            "",
        ),
        ({"REST_LIMITS": {"resourcepool.Lock": {"ttl": 0}}}, "E001", "['resourcepool.Lock']['ttl']=0 is", ""),
        ({"REST_LIMITS": {"resourcepool.Proxy": {"leases": -1}}}, "E001", "['leases']=-1 is not allowed", ""),
        ({"REST_LIMITS": {"shop.Till": {}}}, "E002", "no such resource model", "resourcepool.Lock"),
        ({"REST_WAITS": -1}, "E001", "RESOURCEPOOL['REST_WAITS']=-1 is not allowed", ""),
        ({"TICKET_TTL": "x"}, "E001", "RESOURCEPOOL['TICKET_TTL']='x' is not allowed", ""),
        ({"TICKET_TTL": [6]}, "E001", "RESOURCEPOOL['TICKET_TTL']=[6] is not allowed", ""),
        (
            {"HISTORY": 1},
            "E001",
            "RESOURCEPOOL['HISTORY']: history=1 is not allowed: it must be True or False",
            "",
        ),
        ({"HISTORY_KEPT": 1}, "E001", "RESOURCEPOOL['HISTORY_KEPT']=1 is not allowed", ""),
        ({"HISTORY_ROWS": "many"}, "E001", "RESOURCEPOOL['HISTORY_ROWS']='many' is not allowed", ""),
        (
            {"PREPARED_STATEMENTS": 0},
            "E001",
            "RESOURCEPOOL['PREPARED_STATEMENTS']=0 is not allowed: it must be True",
            "",
        ),
        ({"LEAK_AFTER": -1}, "E001", "RESOURCEPOOL['LEAK_AFTER']: leak_after=-1 is not allowed", ""),
        ({"ALARMS": {"sweep": "x"}}, "E001", "RESOURCEPOOL['ALARMS']['sweep']='x' is not allowed", ""),
        (
            {"ALARMS": {"swep": 1}},
            "E001",
            "RESOURCEPOOL['ALARMS']=['swep'] is not allowed: the known names are",
            "",
        ),
        ({"ALARMS": {7: 1, "swep": 1}}, "E001", "RESOURCEPOOL['ALARMS']=[7, 'swep'] is not allowed", ""),
        ({"QUARANTINE": {7: 1, "bse": 1}}, "E001", "RESOURCEPOOL['QUARANTINE']=[7, 'bse'] is not", ""),
        (
            {"CHECKS": {"resourcepool.Proxy": {7: 1, "url": "http://x/"}}},
            "E001",
            "keywords must be strings",
            "",
        ),
        ({"QUARANTINE": {"bse": 1}}, "E001", "RESOURCEPOOL['QUARANTINE']=['bse'] is not allowed", ""),
        (
            {"SECRET_KEYS": ["abc"]},
            "E001",
            "RESOURCEPOOL['SECRET_KEYS']='key 1' is not allowed: it must be 32 bytes",
            "",
        ),
        (
            {"SECRET_KEYS": "abc"},
            "E001",
            "RESOURCEPOOL['SECRET_KEYS']='str' is not allowed: it must be a list",
            "",
        ),
        ({"POOLS": []}, "E001", "RESOURCEPOOL['POOLS']: it must be a dict, not a list", ""),
        ({"POOLS": {"resourcepool.Proxy": {"ttl": "1"}}}, "E001", "['ttl']: ttl='1' is not allowed", ""),
    ],
)
def test_invalid_settings_are_reported_with_a_hint(chosen: Any, identity: str, message: str, hint: str) -> None:
    ((one, said, advice),) = found(chosen)
    assert one == f"resourcepool.{identity}"
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


def test_a_duration_beyond_floats_is_refused() -> None:
    ((_, said, _),) = found({"TTL": 10**400})
    assert "RESOURCEPOOL['TTL']" in said


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

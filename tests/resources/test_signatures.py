"""The parameters that ``help()`` and type checkers see are the options that callers may give."""

import inspect
import pydoc
from datetime import timedelta
from typing import Any, get_type_hints

import pytest

from resourcepool.conf import POOL_OPTIONS
from resourcepool.exceptions import BadOption
from resourcepool.locks import Lock, RWLock, Semaphore
from resourcepool.models import Proxy
from resourcepool.resources import requests
from resourcepool.resources.requests import OPTIONS
from tests.app.rows import new

TWINS = [("acquire", "aacquire"), ("acquire_many", "aacquire_many"), ("lease", "alease")]


def parameters(method: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(method).parameters)


def test_help_names_every_option_with_its_type_and_default() -> None:
    text = pydoc.render_doc(Proxy.pool.acquire, renderer=pydoc.plaintext)
    for part in (
        *("wait: bool = True", "timeout: float | datetime.timedelta | None = None", "priority: int = 0"),
        *("Literal['spread', 'sticky', 'random']", "allow_in_transaction: bool = False", "**fields: "),
        "AcquireTimeout: no matching resource came free in time.",
    ):
        assert part in text


@pytest.mark.parametrize("kind", [Lock, RWLock, Semaphore])
def test_help_names_every_option_of_a_lock(kind: type) -> None:
    assert {"name", "ttl", "timeout", "on_lost"} <= parameters(kind).keys()
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in parameters(kind).values())


@pytest.mark.parametrize(("plain", "for_asyncio"), TWINS)
def test_the_method_for_asyncio_has_the_same_parameters(plain: str, for_asyncio: str) -> None:
    assert parameters(getattr(Proxy.pool, plain)) == parameters(getattr(Proxy.pool, for_asyncio))


def test_only_what_differs_differs_between_the_methods() -> None:
    lease, acquire = parameters(Proxy.pool.lease), parameters(Proxy.pool.acquire)
    assert [*lease] == [*OPTIONS, "fields"]
    assert {name: acquire[name] for name in lease} == lease
    assert acquire.keys() - lease.keys() == {"wait"}
    many = parameters(Proxy.pool.acquire_many)
    assert [*many] == ["count", *acquire]
    assert [*parameters(requests.wait_options)] == [*acquire]


def test_every_option_but_those_of_waiting_is_for_adopt() -> None:
    adopt = parameters(Proxy.pool.adopt)
    assert [*adopt][:2] == ["pk", "fence"]
    assert {*OPTIONS} - adopt.keys() == {"timeout", "priority", "strategy"}
    assert adopt.keys() - {*OPTIONS} == {"pk", "fence"}


def test_a_pool_declares_the_options_that_the_settings_have() -> None:
    assert {*get_type_hints(requests.PoolOptions)} == {*POOL_OPTIONS}


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ({"timout": 3}, "timeout"),
        ({"tll": timedelta(seconds=3)}, "ttl"),
        ({"wiat": False}, "wait"),
        ({"strategi": "sticky"}, "strategy"),
        ({"contry": "US"}, "country"),
    ],
)
def test_a_misspelt_option_is_told_what_was_meant(misspelt: dict[str, Any], meant: str) -> None:
    with pytest.raises(BadOption, match=rf"no such selector; did you mean {meant}\? resourcepool\.Proxy has: "):
        Proxy.pool.acquire(**misspelt)


@pytest.mark.django_db(transaction=True)
def test_a_lease_offers_what_is_for_users_and_nothing_else() -> None:
    new(Proxy)
    with Proxy.pool.lease() as lease:
        offered = {name for name in dir(lease) if not name.startswith("_")}
    assert offered == {
        *("resource", "pk", "fence", "holder", "model", "using"),
        *("is_held", "is_released", "remaining", "lost", "ensure_held", "guard"),
        *("renew", "release", "fix", "quarantine", "hand_over"),
        *("arenew", "arelease", "afix", "aquarantine"),
    }


@pytest.mark.django_db(transaction=True)
def test_a_hold_offers_what_is_for_users_and_nothing_else() -> None:
    for lock in (Lock("report"), RWLock("catalogue").read(), Semaphore("licence")):
        with lock as hold:
            offered = {name for name in dir(hold) if not name.startswith("_")}
        assert offered - {
            *("key", "release", "arelease", "is_of_block", "is_writing", "is_upgraded", "writes"),
        } == {
            *("name", "fence", "holder", "count", "leases"),
            *("is_held", "remaining", "lost", "ensure_held", "guard"),
        }

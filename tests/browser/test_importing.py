"""An import through the admin in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.models import Proxy

URL = "/admin/resourcepool/proxy/"
SECRET = "c4nary-s3cret"
BAD = f"host,port,password,country\na.example,8080,{SECRET},de\nb.example,99999,{SECRET},us\nc.example,80,,Austria\n"

# Browsers are slow; differences between databases are tested without one.
pytestmark = [pytest.mark.alone, pytest.mark.only("mariadb")]


def choose(page: Any, content: str) -> None:
    page.locator("#id_file").set_input_files(
        {"name": "proxies.csv", "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_role("button", name="Show the plan").click()


def test_a_bad_file_is_refused_with_all_that_is_wrong_and_a_good_one_is_imported(
    window: Callable[..., Any],
) -> None:
    page = window()
    page.goto(URL)
    page.get_by_role("link", name="Import").click()
    choose(page, BAD)
    said = page.locator("#plan-rows").inner_text()
    for fact in ("3", "port", "from 1 to 65535", "4", "country", "two letters"):
        assert fact in said
    assert SECRET not in page.content()
    assert not Proxy.objects.exists()

    page.locator("#back").click()
    choose(page, BAD.replace("99999", "9999").replace("Austria", "at"))
    page.get_by_text("3 new, 0 changed, 0 unchanged, 0 retired.").wait_for()
    assert not Proxy.objects.exists(), "only shown"
    page.get_by_role("button", name="Import").click()
    page.locator(".messagelist").get_by_text("3 new").wait_for()
    page.locator("#result_list tbody tr").nth(2).wait_for()
    assert SECRET not in page.content()
    assert sorted(Proxy.objects.values_list("host", "country")) == [
        ("a.example", "DE"),
        ("b.example", "US"),
        ("c.example", "AT"),
    ]

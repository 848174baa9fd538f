"""The model for sessions in docs/how-to/importing.md."""

import re
from typing import Any

from django.test.utils import isolate_apps

from resourcepool.models import Proxy
from tests.spawned import ROOT


def test_the_documented_model_makes_the_address_of_each_session() -> None:
    text = (ROOT / "docs" / "how-to" / "importing.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"__name__": "tests.app.models"}
    with isolate_apps("tests.app"):
        exec(code, names)
        gateway = Proxy(host="a.example", port=80, username="joe", password="p@ss")
        session = names["ProxySession"](gateway=gateway, name="country-us_session-1")
    assert session.url == "http://joe:p%40ss_country-us_session-1@a.example:80"
    assert "p@ss" not in str(session)

"""The message for a database that does not answer, without secrets."""

import pytest
from django.db import OperationalError, connections

from resourcepool.safety.diagnosis import diagnose, error_text
from tests.aliases import alias


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OperationalError("no\n\troom"), "no room"),
        (OperationalError(2002, "cannot connect"), "2002 cannot connect"),
        (OperationalError("no password=s3cret here, nor t0p"), "no password=*** here, nor ***"),
        (OperationalError(), "OperationalError"),
    ],
)
def test_an_error_is_one_line_without_the_password(error: Exception, said: str) -> None:
    with alias("strange", PASSWORD="s3cret", OPTIONS={"password": "t0p"}):
        assert error_text(connections["strange"], error) == said


def test_an_unsupported_database_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with alias("strange"):
        monkeypatch.setattr(connections["strange"], "vendor", "oracle")
        monkeypatch.setattr(connections["strange"], "display_name", "Oracle")
        (finding,) = diagnose(connections["strange"]).problems
    assert (finding.code, finding.message) == ("E004", "Leases are not supported on Oracle.")

"""MySQL's login methods since 8.0, with and without encryption."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections

from resourcepool.db.dialect import private_connection
from resourcepool.models import Proxy
from tests.aliases import alias
from tests.app.rows import new

pytestmark = [pytest.mark.only("oracle_mysql"), pytest.mark.usefixtures("transactional_db")]

TLS = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"
PLAIN: dict[str, Any] = {}


def asked(sql: str, *, of: Any = connection) -> Any:
    with of.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()


@pytest.fixture
def encrypted() -> dict[str, Any]:
    """The options of a connection that is encrypted; the server has made its certificate itself."""
    (folder,) = asked("SELECT @@datadir")
    return {"ssl": {"ca": f"{folder}ca.pem"}}


@contextlib.contextmanager
def user(how: str, options: dict[str, Any]) -> Iterator[None]:
    """Let a user in who has never been here, so that the server knows no hash of the password yet."""
    with connection.cursor() as cursor:
        cursor.execute("DROP USER IF EXISTS newcomer@'127.0.0.1'")
        cursor.execute(
            f"CREATE USER newcomer@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY 'pass word' {how}"
        )
        cursor.execute(f"GRANT ALL ON `{connection.settings_dict['NAME']}`.* TO newcomer@'127.0.0.1'")
    try:
        with alias("newcomer", USER="newcomer", PASSWORD="pass word", OPTIONS=options):
            yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP USER newcomer@'127.0.0.1'")


def test_a_password_is_told_to_the_server_on_a_plain_connection() -> None:
    with user("", PLAIN):
        assert asked(TLS, of=connections["newcomer"])[1] == ""
        works()


def test_a_connection_that_has_to_be_encrypted_is(encrypted: dict[str, Any]) -> None:
    with user("REQUIRE SSL", encrypted):
        assert asked(TLS, of=connections["newcomer"])[1]
        works()


def test_who_has_to_encrypt_and_does_not_is_refused() -> None:
    with user("REQUIRE SSL", PLAIN), pytest.raises(DatabaseError, match="Access denied"):
        asked(TLS, of=connections["newcomer"])


def works() -> None:
    """See that background threads are let in, too, and that a lease is had."""
    own = private_connection("newcomer")
    try:
        assert asked("SELECT CURRENT_USER()", of=own) == ("newcomer@127.0.0.1",)
    finally:
        own.close()
    new(Proxy)
    held = Proxy.pool.acquire(wait=False)
    assert held is not None
    with held:
        held.renew()

"""Pools whose tables have different collations."""

from collections.abc import Iterator

import pytest
from django.db import connection

from resourcepool.models import Proxy
from resourcepool.status.resources.pools import pools
from tests.app.models import Device
from tests.app.rows import new

pytestmark = pytest.mark.only("mysql")


@pytest.fixture(autouse=True)
def _of_two_collations() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW FULL COLUMNS FROM testapp_device LIKE 'status'")
        before = cursor.fetchone()[2]
        change = (
            "ALTER TABLE testapp_device MODIFY status varchar(20) CHARACTER SET utf8mb4 COLLATE {} NOT NULL"
        )
        cursor.execute(change.format("utf8mb4_spanish_ci"))
        yield
        cursor.execute(change.format(before))


def test_tables_of_different_collations_are_read_one_by_one() -> None:
    new(Proxy)
    new(Device)
    assert [(pool.total, pool.error) for pool in pools([Proxy, Device])] == [(1, ""), (1, "")]

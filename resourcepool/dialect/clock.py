"""The database's clock, read by itself."""

import datetime

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.supported import of


def read_clock(connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return the database's now in UTC, as Django's fields hold moments: with a time zone if USE_TZ is on."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {of(connection).now}", ())
        (found,) = cursor.fetchone()
    moment: datetime.datetime = datetime.datetime.fromisoformat(found) if isinstance(found, str) else found
    plain = moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return plain.replace(tzinfo=datetime.UTC) if settings.USE_TZ else plain

"""The database's clock, read by itself."""

import datetime

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.dialect.supported import of


def read_clock(connection: BaseDatabaseWrapper) -> datetime.datetime:
    """Return the database's now as Django reads moments from it: with a time zone if USE_TZ is on.

    In UTC; but where ``TIME_ZONE`` is set for a database that stores plain text, Django reads all of them as moments of
    that zone (E013), and only what is read in the same way can be compared.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {of(connection).now}", ())
        (found,) = cursor.fetchone()
    moment: datetime.datetime = datetime.datetime.fromisoformat(found) if isinstance(found, str) else found
    plain = moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
    if not settings.USE_TZ:
        return plain
    return plain.replace(tzinfo=datetime.UTC if moment.tzinfo else connection.timezone)

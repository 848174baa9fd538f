"""The database's clock inside querysets."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import expressions

from resourcepool.dialect.base import micros
from resourcepool.dialect.supported import of


class DbNow(expressions.Func):
    """The database's UTC clock in a queryset. Django's own ``Now()`` is the session's local time on MySQL."""

    output_field = models.DateTimeField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).indexed_now, ()


class DbLater(expressions.Func):
    """The database's UTC clock plus ``seconds``, in a queryset."""

    output_field = models.DateTimeField()

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).later, (micros(self.seconds),)


class DbMicros(expressions.Func):
    """The database's clock as whole microseconds since 1970, in a queryset: where a fence begins.

    A row that is deleted and made again would otherwise repeat the fences of its first life.
    """

    output_field = models.BigIntegerField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        return of(connection).micros_now, ()


class MicrosUntil(expressions.Func):
    """Whole microseconds from the database's now until a moment column; negative once it has passed."""

    output_field = models.BigIntegerField()

    def as_sql(self, compiler: Any, connection: BaseDatabaseWrapper, *_: Any, **__: Any) -> Any:
        (moment,) = self.get_source_expressions()
        sql, params = compiler.compile(moment)
        return of(connection).micros_until.format(moment=sql), tuple(params)

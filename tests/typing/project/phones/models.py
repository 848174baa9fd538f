"""Models of the example project."""

from django.db import models

from resourcepool.models import AbstractResource, Pool


class Phone(AbstractResource):
    """A resource with the default pool."""

    number = models.CharField(max_length=20, unique=True)
    slots = models.IntegerField(default=1)

    def __str__(self) -> str:
        return self.number

    def call(self) -> bool:
        """Call this number."""
        return True


class Modem(AbstractResource):
    """A resource whose pool has its own defaults."""

    port = models.IntegerField(default=0)
    pool = Pool(ttl=120, cooldown=5, strategy="sticky", max_hold=None)

    def __str__(self) -> str:
        return f"modem {self.port}"

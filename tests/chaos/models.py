"""The tables that workers write to under ``guard``: a page per proxy with its last writer, and every write."""

from django.db import models


class Page(models.Model):
    """Written by whoever holds the proxy of the same number, without looking what was there."""

    fence = models.BigIntegerField(default=0)

    class Meta:
        app_label = "chaos"

    def __str__(self) -> str:
        return f"page {self.pk} of fence {self.fence}"


class Step(models.Model):
    """One write, added in the same transaction: who wrote before, and who wrote now."""

    page = models.BigIntegerField(db_index=True)
    before = models.BigIntegerField()
    fence = models.BigIntegerField()
    mark = models.CharField(max_length=40)

    class Meta:
        app_label = "chaos"

    def __str__(self) -> str:
        return f"page {self.page} from fence {self.before} to {self.fence}"

"""What the crawlers bring home. A table of the demo's own: created by the demo, in the demo's database."""

from django.db import models


class Page(models.Model):
    """One fetched page. `fence` tells under which lease it was written."""

    url = models.URLField()
    proxy = models.CharField(max_length=64)
    fence = models.BigIntegerField()
    body = models.TextField()

    class Meta:
        app_label = "demo"

    def __str__(self) -> str:
        return self.url

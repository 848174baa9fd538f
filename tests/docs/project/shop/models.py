"""What the snippets of the pages are about."""

from django.db import models

from resourcepool.models import AbstractResource


class Phone(AbstractResource):
    number = models.CharField(max_length=20, unique=True)

    class Meta(AbstractResource.Meta):
        pass

    def __str__(self):
        return self.number


class Page(models.Model):
    url = models.CharField(max_length=200)

    def __str__(self):
        return self.url


class TableSpace(models.Model):
    size = models.IntegerField()

    def __str__(self):
        return f"{self.size}"


class Order(models.Model):
    queue = models.CharField(max_length=20, default="")
    state = models.CharField(max_length=20, default="new")
    paid_at = models.DateTimeField(null=True)
    taken = models.BooleanField(default=False)

    def __str__(self):
        return f"order {self.pk}"

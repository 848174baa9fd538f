"""Leased models that differ from Proxy in keys, columns and pools."""

import uuid

from django.db import models

from resourcepool.db.dialect import KeyField
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.models import AbstractLease, AbstractResource, Pool


class Team(models.Model):
    """The owner of a device; not leased."""

    name = models.CharField(max_length=50)

    def __str__(self) -> str:
        return self.name


class Login(models.Model):
    """A required secret in a model that is not a resource."""

    name = models.CharField(max_length=50)
    secret = EncryptedTextField(bound_to=["name"])
    notes = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return self.name


class Device(AbstractResource):
    """A resource model with a UUID key, choices, a foreign key and a configured pool."""

    class Kind(models.TextChoices):
        PHONE = "phone"
        TABLET = "tablet"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = KeyField(max_length=50)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.PHONE)
    slots = models.IntegerField(default=1)
    is_rooted = models.BooleanField(default=False)
    bought_on = models.DateField(null=True, blank=True)
    owner = models.ForeignKey(Team, null=True, blank=True, on_delete=models.SET_NULL)
    pin = EncryptedTextField(default="", blank=True, max_length=500)
    traits = models.JSONField(default=dict, blank=True)

    pool = Pool(ttl=30, timeout=5, strategy="sticky")

    def __str__(self) -> str:
        return self.name


class Bare(AbstractLease):
    """A bare lease: no ``in_service``, no pool."""

    label = models.CharField(max_length=50, default="")

    def __str__(self) -> str:
        return self.label


class Poll(AbstractLease):
    """A case-sensitive text key, and other column names."""

    name = KeyField(primary_key=True, max_length=50)
    is_open = models.BooleanField(default=True, db_column="accepts candidates")

    claimable_when = {"is_open": True}

    class Meta:
        db_table = "testapp votes"

    def __str__(self) -> str:
        return self.name


class Ghost(AbstractResource):
    """A resource whose table does not exist."""

    class Meta(AbstractResource.Meta):
        managed = False

    def __str__(self) -> str:
        return f"ghost {self.pk}"

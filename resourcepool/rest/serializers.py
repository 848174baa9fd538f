"""The bodies and query parameters of requests, and the answers of actions: by name, type and meaning.

They name what a request may have, and describe it for clients. They validate no value: the function that uses it does,
for all interfaces alike.
"""

from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DictField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    Serializer,
)

from resourcepool.resources.source import STRATEGIES
from resourcepool.resources.state import State
from resourcepool.rest.limits import MAX_HOLDER, MAX_REQUEST_ID
from resourcepool.status.locks.kinds import LockKind

MAX_TIMEOUT = 25.0  # seconds; web servers and proxies usually time out after 30
MAX_LIMIT = 200  # rows of a page


class Request(Serializer[Any]):
    """The fields of a body, or the query parameters."""

    allows_other_fields = False  # fields that depend on the URL

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the fields, the required ones first."""
        declared = cls._declared_fields
        return sorted(declared, key=lambda name: not declared[name].required)

    @classmethod
    def required_names(cls) -> list[str]:
        return [name for name, field in cls._declared_fields.items() if field.required]


def _text(about: str, **options: Any) -> CharField:
    return CharField(required=False, help_text=about, **options)


def _seconds(about: str, **options: Any) -> FloatField:
    return FloatField(required=False, min_value=0, help_text=about, **options)


def _limit() -> IntegerField:
    return IntegerField(default=MAX_LIMIT, min_value=1, max_value=MAX_LIMIT, help_text="Rows of a page.")


def _ttl() -> FloatField:
    return _seconds("Seconds from each renewal to the end of the lease.")


class PoolOptions(Request):
    """The options of a lease that are passed to the pool."""

    ttl = _ttl()
    priority = IntegerField(default=0, help_text="The lowest number is served first.")
    strategy = ChoiceField(STRATEGIES, required=False, help_text="The order in which free resources are tried.")
    cooldown = _seconds("Seconds of cool-down after the release.")
    max_hold = _seconds("Seconds after which the lease cannot be renewed.")


class CommonOptions(Request):
    """The options of leases of resources and of locks."""

    timeout = _seconds("Seconds to wait in line.", max_value=MAX_TIMEOUT, default=0)
    holder = _text("A name for people; default: the user and the address.", max_length=MAX_HOLDER)
    request_id = _text("Makes the request safe to repeat; new for each lease.", max_length=MAX_REQUEST_ID)


class AcquireRequest(PoolOptions, CommonOptions):
    """Which resource to lease, and how."""

    where = DictField(required=False, help_text="Fields of the model and their allowed values.")


class AcquireLockRequest(CommonOptions):
    """How to acquire a lock."""

    ttl = _ttl()


class TokenRequest(Request):
    """A lease, by its token."""

    lease = CharField(help_text="The token in the response to acquire.")


class QuarantineRequest(TokenRequest):
    """A lease, and what is wrong with its resource."""

    reason = CharField(help_text="Why, for people.")


class OperateRequest(Request):
    """The resources, by exactly one of ``ids``, ``where`` and ``all``; and the fields of the operation."""

    allows_other_fields = True

    ids = ListField(required=False, help_text="Primary keys.")
    where = DictField(required=False, help_text="Fields of the model and their allowed values.")
    all = BooleanField(default=False, help_text="All resources that the operation may change.")
    dry_run = BooleanField(default=False, help_text="Only count them.")


class SubmitRequest(Request):
    """A task."""

    type = CharField(help_text="The name of its handler.")
    params = DictField(required=False, help_text="The parameters of its handler.")
    key = _text("Makes the request safe to repeat: a stream has one task with this key.")
    lane = _text("Tasks of the same lane run in order.")


class PublishRequest(Request):
    """A message."""

    payload = JSONField(help_text="Any JSON.")


class LimitQuery(Request):
    """The length of a list."""

    limit = _limit()


class PageQuery(Request):
    """A part of a list."""

    after = _text("The ``after`` of the previous page.")
    limit = _limit()


class ResourceQuery(PageQuery):
    """A part of the resources, and filters."""

    state = ChoiceField(State.values, required=False)
    tag = ListField(child=CharField(), required=False, help_text="Resources must have all of these tags.")


class LeaseQuery(LimitQuery):
    """A part of the leases, and filters."""

    holder = _text("The name of the holder.")
    host = _text("The host of the holder.")


class SystemQuery(PageQuery):
    """A part of the streams (or dispensers ..), and filters."""

    status = _text("A filter of this list, such as ``paused``.")
    containing = _text("A part of the name.")


class LockDetailQuery(Request):
    """The kind of a lock; without it all kinds of this name."""

    kind = ChoiceField([*LockKind], required=False)


class LockQuery(PageQuery):
    """A part of the locks, and filters."""

    kind = ChoiceField([*LockKind], required=False)
    prefix = _text("The beginning of the name.")


class Lease(Serializer[Any]):
    """A lease that was granted."""

    lease = CharField(help_text="The token: it renews and releases the lease.")
    pool = CharField(help_text='"app.Model".')
    id = JSONField(help_text="The primary key of the row.")
    fence = IntegerField(help_text="The fencing token: higher than that of all earlier leases of the row.")
    holder = CharField()
    ttl = FloatField(help_text="Seconds from each renewal to the end of the lease.")
    expires_in = FloatField(help_text="Seconds for which the lease is valid without a renewal.")
    resource = DictField(required=False, help_text="What the holder needs, with secrets; a lock has none.")


class Submitted(Serializer[Any]):
    """The task of a key."""

    key = CharField()
    is_new = BooleanField(help_text="False: the stream had a task with this key before.")


class OperationField(Serializer[Any]):
    """A field that an operation asks for."""

    name = CharField()
    label = CharField()  # type: ignore[assignment]  # the metaclass moves it away
    needed = BooleanField()
    type = ChoiceField(["text", "seconds"])
    help = CharField(allow_blank=True)


class Operation(Serializer[Any]):
    """An operation of operators on resources."""

    name = CharField()
    title = CharField()
    effect = CharField(help_text="What it does, in a sentence.")
    permission = CharField(help_text='The action of the permission, such as "operate".')
    fields = ListField(child=OperationField())  # type: ignore[assignment]


class Error(Serializer[Any]):
    """Why the request was refused; then nothing has been changed."""

    error = CharField(help_text="The name of the error.")
    detail = CharField(help_text="A sentence for people.")
    name = CharField(
        required=False, help_text="The field, the parameter or the part of the URL that is at fault."
    )

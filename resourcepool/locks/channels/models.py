"""Channels, their messages and their subscriptions."""

from functools import partial
from typing import Any, ClassVar, Self

from django.core.validators import MinLengthValidator
from django.db import models, router, transaction
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce

from resourcepool.db.dialect import DbNow, FenceField, KeyField
from resourcepool.db.dialect.fields import seconds, whole
from resourcepool.db.dialect.statement import ANY_ROW, Where
from resourcepool.db.rows import ensure_row
from resourcepool.events import sentence_for
from resourcepool.leases.models import AbstractLease, LeaseQuerySet, table_of
from resourcepool.leases.terms import MAX_LENGTH
from resourcepool.locks.models import MAX_NAME
from resourcepool.options import DAY
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.text import CharField, TextField
from resourcepool.translation import gettext_lazy as _, gettext_noop

KEEP_SECONDS = 7 * DAY  # seconds
KEEP_MESSAGES = 100_000
MAX_KEPT_MESSAGES = 10_000_000
BATCH = 1_000  # rows in a statement
CHANNEL_ID = "channel_id"  # unknown to the type checker


class ChannelQuerySet(models.QuerySet[Any]):
    """Operator actions on channels."""

    def prune(self, actor: str = "") -> int:
        """Remove all messages; return how many channels had any. Their numbers continue."""
        return sum(channel.remove_up_to(channel.last, actor) for channel in self.all())

    def remove(self, actor: str = "") -> int:
        """Remove channels with their messages and subscriptions; return how many."""
        return sum(channel.remove(actor) for channel in self.all())


class Channel(models.Model):
    """A channel. A publisher locks this row until its commit, so that messages have one order."""

    records_operations: ClassVar[bool] = True
    none_yet = gettext_noop("a channel; there is none yet, the first message creates it")

    name = KeyField(_("name"), max_length=MAX_NAME, primary_key=True, validators=[MinLengthValidator(1)])
    last = models.BigIntegerField(
        _("last number"), default=0, editable=False, help_text=_("The number of the newest message.")
    )
    made = FenceField(
        default=0, editable=False, help_text=_("Distinguishes it from an earlier channel of the same name.")
    )
    kept = seconds(_("messages kept (s)"), KEEP_SECONDS, _("How long messages are kept."), 1.0, 3_650 * DAY)
    kept_count = whole(
        _("messages kept"),
        KEEP_MESSAGES,
        _("Maximum number of messages; the oldest are removed first."),
        1,
        MAX_KEPT_MESSAGES,
    )

    objects: ClassVar[Any] = ChannelQuerySet.as_manager()

    class Meta:
        verbose_name = _("channel")
        verbose_name_plural = _("channels")
        default_permissions = ("change", "view", "operate", "publish")

    def __str__(self) -> str:
        return str(self.name)

    def ensure(self, using: str) -> None:
        """Add this row if there is no channel of its name."""
        ensure_row(type(self), using, self.name, kept=self.kept, kept_count=self.kept_count)

    def remove_up_to(self, number: int, actor: str = "") -> bool:
        """Remove the messages up to this number, in batches; return whether there were any."""
        using, removed, last = router.db_for_write(type(self), instance=self), 0, -1
        rows: Any = Message.objects
        messages = rows.using(using).filter(channel_id=self.name, number__lte=number).order_by("number")
        # number__gt: a long transaction may keep seeing rows that others have removed.
        while batch := list(messages.filter(number__gt=last).values_list("pk", "number")[:BATCH]):
            removed += rows.using(using).filter(pk__in=[pk for pk, _ in batch])._raw_delete(using)
            last = batch[-1][1]
        if removed and actor:
            reason = sentence_for("messages_removed", name=self.name, count=removed)
            emit(RowEvent(EventKind.DISCARDED, type(self), using, self.name, reason=reason, actor=actor))
        return removed > 0

    def remove(self, actor: str = "") -> bool:
        """Remove it with its messages and subscriptions; unnamed readers continue with a new channel of this name."""
        using = router.db_for_write(type(self), instance=self)
        self.remove_up_to(self.last)
        with transaction.atomic(using=using):
            if not type(self).objects.using(using).filter(pk=self.pk)._raw_delete(using):
                return False
            belongings: tuple[Any, ...] = (Message, Subscription)  # including messages published meanwhile
            for model in belongings:
                model.objects.using(using).filter(channel_id=self.name)._raw_delete(using)
            emit(RowEvent(EventKind.DELETED, type(self), using, self.name, reason=self.name, actor=actor))
        return True


class Message(models.Model):
    """A message. Its number is assigned while the channel is locked: numbers appear in order, without gaps."""

    channel = models.ForeignKey(
        Channel,
        models.PROTECT,
        related_name="messages",
        verbose_name=_("channel"),
        db_index=False,
        db_constraint=False,
    )
    number = models.BigIntegerField(_("number"), editable=False)
    payload = TextField(_("payload"), help_text=_("JSON."))
    published_at = models.DateTimeField(_("published at"), default=DbNow, editable=False)
    publisher = CharField(_("publisher"), max_length=MAX_LENGTH, default="", editable=False)

    objects: ClassVar[Any] = models.Manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["channel", "number"], name="resourcepool_message_number")
        ]
        indexes = [models.Index(fields=["channel", "published_at", "number"], name="resourcepool_message_at")]

    def __str__(self) -> str:
        return f"{getattr(self, CHANNEL_ID)}/{self.number}"


class SubscriptionQuerySet(LeaseQuerySet):
    """Filters and operator actions on subscriptions."""

    def durable(self) -> Self:
        """Subscriptions whose cursor outlives their process."""
        return self.filter(is_durable=True)

    def with_channel(self) -> Self:
        """Annotate the numbers of the channel's newest message and of its oldest kept one."""
        messages = Message.objects.filter(channel_id=OuterRef("channel_id")).order_by("number")
        newest = Channel.objects.filter(pk=OuterRef("channel_id")).values("last")
        first = Coalesce(Subquery(messages.values("number")[:1]), Subquery(newest) + 1)
        return self.annotate(newest=Subquery(newest), oldest=first)

    def move(self, to: str, actor: str = "") -> int:
        """Move their cursors to "now", "start" or a number; return how many.

        A number beyond the newest message means "now", so that a typo skips nothing. A current reader loses its lease
        and continues from there.
        """
        return self._done(EventKind.MOVED, actor, to, partial(_move, to))

    def remove(self, actor: str = "") -> int:
        """Remove those that have no reader; return how many."""
        return self._done(EventKind.DELETED, actor, "", lambda row: row.available()._raw_delete(row.db))

    def _done(self, what: EventKind, actor: str, why: str, act: Any) -> int:
        self._for_write = True  # otherwise ``db`` could be a replica
        done, using = 0, self.db
        for pk, fence, channel, name in self.values_list("pk", "fence", "channel_id", "name"):
            with transaction.atomic(using=using):
                if act(self.model.objects.using(using).filter(pk=pk)):
                    done += 1
                    reason = (
                        sentence_for("about", name=f"{channel}/{name}", why=why) if why else f"{channel}/{name}"
                    )
                    emit(RowEvent(what, self.model, using, pk, fence, reason=reason, actor=actor))
        return done


def _move(to: str, row: Any) -> int:
    numbers = row.with_channel().values_list("newest", "oldest").first()
    if numbers is None:
        return 0
    newest, oldest = numbers
    cursor = {"now": newest, "start": oldest - 1}.get(to)
    changes = {"cursor": min(int(to) - 1, newest) if cursor is None else cursor, "fence": F("fence") + 1}
    return int(row.update(**changes, busy_before=DbNow(), holder=""))


class Subscription(AbstractLease):
    """A subscription to a channel. Leased, so that one process at a time reads it; its fence guards the cursor."""

    emits_events: ClassVar[bool] = False
    records_operations: ClassVar[bool] = True

    channel = models.ForeignKey(
        Channel,
        models.PROTECT,
        related_name="subscriptions",
        verbose_name=_("channel"),
        db_index=False,
        db_constraint=False,
    )
    name = KeyField(_("name"), max_length=MAX_NAME)
    is_durable = models.BooleanField(_("durable"), default=True, editable=False)
    cursor = models.BigIntegerField(
        _("cursor"), default=0, editable=False, help_text=_("The number of the last message that is done.")
    )
    missed = models.BigIntegerField(
        _("missed"), default=0, editable=False, help_text=_("Messages removed before it read them.")
    )
    address = models.PositiveIntegerField(
        default=0, editable=False, help_text=_("Where hints for its process are sent.")
    )

    objects: ClassVar[Any] = SubscriptionQuerySet.as_manager()

    class Meta:
        verbose_name = _("subscription")
        verbose_name_plural = _("subscriptions")
        default_permissions = ("view", "operate")
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="resourcepool_subscription_name")
        ]

    def __str__(self) -> str:
        return f"{getattr(self, CHANNEL_ID)}/{self.name}"

    @classmethod
    def where(cls, selector: str, connection: Any) -> Where:
        """Return the condition for the row whose primary key is the ticket's ``selector``."""
        if not selector.isdigit():
            return ANY_ROW
        return Where(f" AND {table_of(connection, cls).pk} = %s", (int(selector),))

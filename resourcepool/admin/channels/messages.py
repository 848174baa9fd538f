"""Messages in the admin: to be read."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.channels.subscriptions import ChannelFilter
from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.admin.words import moments
from resourcepool.locks.channels.models import BroadcastMessage


@admin.register(BroadcastMessage)
class BroadcastMessageAdmin(ReadOnlyAdmin):
    """The newest messages first; of one channel with the filter."""

    list_display = ("number", "channel", moments("published_at", _("published at")), "publisher")
    fields = ("channel", "number", "payload", list_display[2], "publisher")
    list_filter = (ChannelFilter,)

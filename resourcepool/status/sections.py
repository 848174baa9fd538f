"""The sections into which surfaces sort the systems."""

from resourcepool.translation import gettext_lazy as _

RESOURCES = _("Resources")
WORK = _("Work")
QUEUES = _("Queues")
LOCKS = _("Locks and channels")
INTERNALS = _("Internals")

SECTIONS = (RESOURCES, WORK, QUEUES, LOCKS, INTERNALS)

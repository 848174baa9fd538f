"""What the jobs are called, in their rows and wherever they are shown."""

from django.utils.translation import gettext_noop as _

SWEEP, PRUNE, STATISTICS = _("sweep"), _("prune history"), _("statistics")
CHECK = "check "  # and the label of the pool that is checked

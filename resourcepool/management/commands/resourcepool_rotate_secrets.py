"""``manage.py resourcepool_rotate_secrets``: encrypt every stored secret with the first key."""

from typing import Any

from django.core.management.base import CommandError

from resourcepool.encryption.rotation import rotate_secrets
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.base import OperatorCommand
from resourcepool.translation import gettext as _, gettext_lazy


class Command(OperatorCommand):
    about = gettext_lazy(
        "Re-encrypts every stored secret with the first key in RESOURCEPOOL['SECRET_KEYS']. Safe to repeat."
    )

    example = "manage.py resourcepool_rotate_secrets"
    interrupted = gettext_lazy("secrets already rotated are kept; run again for the rest")

    def run(self, **options: Any) -> None:
        try:
            for label, done in rotate_secrets():
                self.stdout.write(_("%(pool)s: %(count)s re-encrypted") % {"pool": label, "count": done})
        except ResourcePoolError as error:
            text = _("%s. Secrets rotated before are kept; nothing is lost.")
            raise CommandError(text % localized(error)) from error

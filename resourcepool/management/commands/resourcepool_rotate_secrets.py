"""``manage.py resourcepool_rotate_secrets``: encrypt every stored secret with the first key."""

from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.encryption.rotation import rotate_secrets
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.base import OperatorCommand


class Command(OperatorCommand):
    about = gettext_lazy(
        "Encrypts every stored secret anew with the first key in RESOURCEPOOL['SECRET_KEYS']. May be repeated."
    )

    example = "manage.py resourcepool_rotate_secrets"
    interrupted = gettext_lazy("what was rotated stays rotated; doing it again rotates the rest")

    def run(self, **options: Any) -> None:
        try:
            for label, done in rotate_secrets():
                self.stdout.write(_("%(pool)s: %(count)s encrypted anew") % {"pool": label, "count": done})
        except ResourcePoolError as error:
            told = _("%s What was rotated before stays rotated; nothing is lost.")
            raise CommandError(told % localized(error)) from error

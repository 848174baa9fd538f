"""``manage.py resourcepool_rotate_secrets``: encrypt every stored secret with the first key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from resourcepool.exceptions import ResourcePoolError
from resourcepool.resources.rotation import rotate_secrets


class Command(BaseCommand):
    help = (
        "Encrypts every stored secret anew with the first key in RESOURCEPOOL['SECRET_KEYS']. May be repeated."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            for label, done in rotate_secrets():
                self.stdout.write(f"{label}: {done} encrypted anew")
        except ResourcePoolError as error:
            raise CommandError(f"{error} What was rotated before stays rotated; nothing is lost.") from error

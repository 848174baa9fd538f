"""Encrypts stored secrets anew after a new key was put first (see ``secret``)."""

from collections.abc import Iterator

from django.apps import apps
from django.db import router, transaction

from resourcepool.resources.secret import EncryptedTextField, Sealed

CHUNK = 200


def rotate_secrets() -> Iterator[tuple[str, int]]:
    """Yield ("app.Model.field", how many so far) after every chunk. Interrupting it loses nothing.

    Raises:
        SecretUnreadable: a secret that no key decrypts.
    """
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield from _rotate(model, field.name)


def _rotate(model: type, name: str) -> Iterator[tuple[str, int]]:
    rows = model._base_manager.using(router.db_for_write(model))  # type: ignore[attr-defined]
    label, done, last = f"{model._meta.label}.{name}", 0, None  # type: ignore[attr-defined]
    while True:
        later = rows.order_by("pk") if last is None else rows.filter(pk__gt=last).order_by("pk")
        # Locked, because somebody may be entering a new password this moment.
        with transaction.atomic(using=rows.db):
            chunk = list(later.select_for_update().only("pk", name)[:CHUNK])
            sealed = [row for row in chunk if isinstance(row.__dict__[name], Sealed)]
            done += rows.bulk_update(sealed, [name])  # reading decrypts, writing encrypts with the first key
        if not chunk:
            return
        last = chunk[-1].pk
        yield label, done

"""Encrypts stored secrets again, each for its row, after a new key was put first (see ``field``)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.apps import apps
from django.db import connections, router
from django.db.models import Case, Value, When
from django.views.decorators.debug import sensitive_variables

from resourcepool.encryption.field import EncryptedTextField
from resourcepool.encryption.sealed import Sealed, seal
from resourcepool.events import say
from resourcepool.exceptions import RowLocked, SecretUnreadable
from resourcepool.leases.short_transactions import briefly

CHUNK = 200


def rotate_secrets() -> Iterator[tuple[str, int]]:
    """Yield ("app.Model.field", how many so far) after every chunk. Interrupting it loses nothing.

    Raises:
        SecretUnreadable: a secret that no key decrypts; names the row.
        DatabaseUnavailable, NotMigrated: it could not be read or written. RowLocked: all but what is locked is done.
    """
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield from _rotate(model, field.name)


def _rotate(model: Any, name: str) -> Iterator[tuple[str, int]]:
    rows = model._base_manager.using(router.db_for_write(model))
    label, done, last, locked = f"{model._meta.label}.{name}", 0, None, None
    while True:
        later = rows.order_by("pk") if last is None else rows.filter(pk__gt=last).order_by("pk")
        try:
            count, last = briefly(rows.db, partial(_rotate_some, later, name, skips=locked is not None))
        except RowLocked as error:
            if locked is not None:
                raise
            locked = error  # the others first: then it says so
            continue
        if last is None:
            break
        done += count
        yield label, done
    if locked is not None:
        raise locked


def _rotate_some(rows: Any, name: str, *, skips: bool) -> tuple[int, Any]:
    """Rotate the first of ``rows``, without locked ones if it ``skips``; return how many, and the last key or None."""
    field = rows.model._meta.get_field(name)
    skips = skips and connections[rows.db].features.has_select_for_update_skip_locked
    # Locked, because somebody may be entering a new password this moment.
    chosen = rows.select_for_update(skip_locked=skips)
    chunk = list(chosen.only("pk", name, *field.bound_to)[:CHUNK])
    sealed = {row.pk: _anew(field, row) for row in chunk if isinstance(row.__dict__[name], Sealed)}
    # Not bulk_update(): it reads each secret, and an error report on it would show them.
    anew = [When(pk=pk, then=Value(secret, output_field=field)) for pk, secret in sealed.items()]
    found = rows.model._base_manager.using(rows.db).filter(pk__in=sealed)
    done = found.update(**{name: Case(*anew, output_field=field)}) if anew else 0
    return done, chunk[-1].pk if chunk else None


@sensitive_variables()
def _anew(field: Any, row: Any) -> Sealed:
    """Return the secret of ``row`` sealed with the first key, for this row."""
    purposes = field.purposes(row)
    try:
        return seal(row.__dict__[field.name].open(*purposes), purposes[0])
    except SecretUnreadable as error:
        raise naming(row, error) from None


def naming(row: Any, error: SecretUnreadable) -> SecretUnreadable:
    """Return the same error with the row that it is about."""
    return SecretUnreadable(say("about", name=f"{row._meta.label} {row.pk}", why=str(error)))

"""Re-encrypts stored secrets, each for its row, after a new key was put first (see ``field``)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.apps import apps
from django.db import router
from django.db.models import Case, Value, When
from django.views.decorators.debug import sensitive_variables

from resourcepool.db.rows import for_update
from resourcepool.db.transactions import run_short_transaction
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.encryption.secret import NO_PURPOSE, EncryptedSecret, encrypt
from resourcepool.events import Sentence, joined, sentence_for
from resourcepool.exceptions import ResourcePoolError, RowLocked, SecretUnreadable
from resourcepool.translation import gettext_noop

CHUNK = 200
MAX_NAMED_ROWS = 100  # rows in an error


def rotate_secrets() -> Iterator[tuple[str, int]]:
    """Yield ("app.Model.field", number rotated so far) after every chunk. An interruption loses nothing.

    Raises:
        SecretUnreadable: no key decrypts some secrets; names their rows. All others are done.
        RowLocked: some rows stayed locked. All others are done.
        DatabaseUnavailable, NotMigrated: the database could not be read or written.
    """
    errors: list[ResourcePoolError] = []
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield from _rotate(model, field.name, errors)
    if errors:
        raise type(errors[0])(joined([str(error) for error in errors]))


def _rotate(model: Any, name: str, errors: list[ResourcePoolError]) -> Iterator[tuple[str, int]]:
    """Rotate the secrets of one field; adds to ``errors`` why some were not rotated."""
    rows = model._base_manager.using(router.db_for_write(model))
    label, done, last, locked = f"{model._meta.label}.{name}", 0, None, None
    unreadable: dict[Any, SecretUnreadable] = {}
    while True:
        later = rows.all() if last is None else rows.filter(pk__gt=last)
        try:
            count, last = run_short_transaction(
                rows.db, partial(_rotate_some, later, name, unreadable, skips=locked is not None)
            )
        except RowLocked as error:
            if locked is not None:
                locked = error
                break
            locked = error  # do the other rows first
            continue
        if last is None:
            break
        done += count
        yield label, done
    if unreadable:
        errors.append(_unreadable(model, unreadable))
    if locked is not None:
        errors.append(locked)


def _rotate_some(
    rows: Any, name: str, unreadable: dict[Any, SecretUnreadable], *, skips: bool
) -> tuple[int, Any]:
    """Rotate the first chunk of ``rows``; return the number rotated, and the last key or None.

    Args:
        unreadable: receives the error for each row that no key decrypts; such rows are unchanged.
        skips: skip locked rows.
    """
    field = rows.model._meta.get_field(name)
    # Locked, because a user may be saving a new password at this moment.
    chosen = for_update(rows, skip_locked=skips)
    chunk = list(chosen.only("pk", name, *field.bound_to)[:CHUNK])
    rotated = {}
    for row in chunk:
        if isinstance(row.__dict__[name], EncryptedSecret):
            try:
                rotated[row.pk] = _reencrypted(field, row)
            except SecretUnreadable as error:
                unreadable[row.pk] = error
    # Not bulk_update(): it decrypts each secret, and its error reports would show them.
    cases = [When(pk=pk, then=Value(secret, output_field=field)) for pk, secret in rotated.items()]
    changed = rows.model._base_manager.using(rows.db).filter(pk__in=rotated)
    done = changed.update(**{name: Case(*cases, output_field=field)}) if cases else 0
    return done, chunk[-1].pk if chunk else None


@sensitive_variables()
def _reencrypted(field: Any, row: Any) -> EncryptedSecret:
    """Return the secret of ``row`` encrypted with the first key, for this row."""
    purposes = field.purposes(row)
    return encrypt(row.__dict__[field.name].open(*purposes, NO_PURPOSE), purposes[0])


def _unreadable(model: Any, errors: dict[Any, SecretUnreadable]) -> SecretUnreadable:
    """Return the error that names these rows."""
    keys = ", ".join(map(str, list(errors)[:MAX_NAMED_ROWS])) + (" .." if len(errors) > MAX_NAMED_ROWS else "")
    why = str(next(iter(errors.values())))
    values = {"count": len(errors), "name": f"{model._meta.label} {keys}", "why": why}
    return SecretUnreadable(Sentence(gettext_noop("%(count)d not re-encrypted: %(name)s: %(why)s"), **values))


def with_row(row: Any, error: SecretUnreadable) -> SecretUnreadable:
    """Return the error with the name of its row."""
    return SecretUnreadable(sentence_for("about", name=f"{row._meta.label} {row.pk}", why=str(error)))

"""Re-encrypts stored secrets, each for its row, after a new key was put first (see ``field``)."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from django.apps import apps
from django.db import connections, router
from django.db.models import Case, Value, When
from django.views.decorators.debug import sensitive_variables

from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched, for_update
from resourcepool.db.transactions import change_skipping_locked, run_short_transaction
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.events import Sentence, joined
from resourcepool.exceptions import ResourcePoolError, RowLocked, SecretUnreadable
from resourcepool.translation import gettext_noop

CHUNK = 200
MAX_NAMED_ROWS = 100  # rows in an error


def rotate_secrets() -> Iterator[tuple[str, int]]:
    """Yield ("app.Model.field", number rotated) for each column with secrets. An interruption loses nothing.

    Raises:
        SecretUnreadable: no key decrypts some secrets; names their rows. All others are done.
        RowLocked: some rows stayed locked. All others are done.
        DatabaseUnavailable, NotMigrated: the database could not be read or written.
    """
    errors: list[ResourcePoolError] = []
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField) and (done := _rotate(model, field, errors)):
                yield f"{model._meta.label}.{field.name}", done
    if errors:
        raise type(errors[0])(joined([str(error) for error in errors]))


def _rotate(model: Any, field: Any, errors: list[ResourcePoolError]) -> int:
    rows = model._base_manager.using(router.db_for_write(model)).order_by("pk")
    keys = retrying(connections[rows.db], lambda: list(rows.values_list("pk", flat=True)))
    unreadable: dict[Any, SecretUnreadable] = {}

    def change(pks: Sequence[Any], skips: bool) -> int:
        return run_short_transaction(rows.db, partial(_rotate_some, rows, field, pks, unreadable, skips=skips))

    try:
        done = change_skipping_locked(rows.db, model, batched(keys, CHUNK), change)
    except RowLocked as error:
        done = error.done
        errors.append(error)
    if unreadable:
        errors.append(_unreadable(model, unreadable))
    return done


def _rotate_some(
    rows: Any, field: Any, pks: Sequence[Any], unreadable: dict[Any, SecretUnreadable], *, skips: bool
) -> int:
    """Rotate the secrets of these rows; return the number rotated.

    Args:
        unreadable: receives the error for each row that no key decrypts; such rows are unchanged.
        skips: skip locked rows.
    """
    # Locked, because a user may be saving a new password at this moment.
    chosen = for_update(rows.filter(pk__in=pks), skip_locked=skips)
    rotated = {}
    for row in chosen.only("pk", field.name, *field.bound_to):
        if isinstance(row.__dict__[field.name], EncryptedSecret):
            try:
                rotated[row.pk] = _reencrypted(field, row)
            except SecretUnreadable as error:
                unreadable[row.pk] = error
    if not rotated:
        return 0
    # Not bulk_update(): it decrypts each secret, and its error reports would show them.
    cases = [When(pk=pk, then=Value(secret, output_field=field)) for pk, secret in rotated.items()]
    changed = rows.order_by().filter(pk__in=rotated)
    return int(changed.update(**{field.name: Case(*cases, output_field=field)}))


@sensitive_variables()
def _reencrypted(field: Any, row: Any) -> EncryptedSecret:
    purposes = field.purposes(row)
    return encrypt(row.__dict__[field.name].open(*purposes), purposes[0])


def _unreadable(model: Any, errors: dict[Any, SecretUnreadable]) -> SecretUnreadable:
    keys = ", ".join(map(str, list(errors)[:MAX_NAMED_ROWS])) + (" .." if len(errors) > MAX_NAMED_ROWS else "")
    why = str(next(iter(errors.values())))
    values = {"count": len(errors), "name": f"{model._meta.label} {keys}", "why": why}
    return SecretUnreadable(Sentence(gettext_noop("%(count)d not re-encrypted: %(name)s: %(why)s"), **values))

"""Encrypts stored secrets again, each for its row, after a new key was put first (see ``field``)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.apps import apps
from django.db import connections, router
from django.db.models import Case, Value, When
from django.utils.translation import gettext_noop
from django.views.decorators.debug import sensitive_variables

from resourcepool.encryption.field import EncryptedTextField
from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.events import Sentence, joined, sentence_for
from resourcepool.exceptions import ResourcePoolError, RowLocked, SecretUnreadable
from resourcepool.leases.short_transactions import run_short_transaction

CHUNK = 200
MAX_NAMED_ROWS = 100  # rows in an error


def rotate_secrets() -> Iterator[tuple[str, int]]:
    """Yield ("app.Model.field", how many so far) after every chunk. Interrupting it loses nothing.

    Raises:
        SecretUnreadable: secrets that no key decrypts; says how many, and names their rows. All others are done.
        RowLocked: rows that stayed locked. All others are done.
        DatabaseUnavailable, NotMigrated: it could not be read or written.
    """
    left: list[ResourcePoolError] = []
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField):
                yield from _rotate(model, field.name, left)
    if left:
        raise type(left[0])(joined([str(error) for error in left]))


def _rotate(model: Any, name: str, left: list[ResourcePoolError]) -> Iterator[tuple[str, int]]:
    """Rotate the secrets of one field; add to ``left`` why some were not."""
    rows = model._base_manager.using(router.db_for_write(model))
    label, done, last, locked = f"{model._meta.label}.{name}", 0, None, None
    unread: dict[Any, SecretUnreadable] = {}
    while True:
        later = rows.order_by("pk") if last is None else rows.filter(pk__gt=last).order_by("pk")
        try:
            count, last = run_short_transaction(
                rows.db, partial(_rotate_some, later, name, unread, skips=locked is not None)
            )
        except RowLocked as error:
            if locked is not None:
                locked = error
                break
            locked = error  # the others first: then it says so
            continue
        if last is None:
            break
        done += count
        yield label, done
    if unread:
        left.append(_unreadable(model, unread))
    if locked is not None:
        left.append(locked)


def _rotate_some(rows: Any, name: str, unread: dict[Any, SecretUnreadable], *, skips: bool) -> tuple[int, Any]:
    """Rotate the first of ``rows``, without locked ones if it ``skips``; return how many, and the last key or None.

    What no key decrypts is left as it is, and added to ``unread``, by primary key.
    """
    field = rows.model._meta.get_field(name)
    skips = skips and connections[rows.db].features.has_select_for_update_skip_locked
    # Locked, because somebody may be entering a new password this moment.
    chosen = rows.select_for_update(skip_locked=skips)
    chunk = list(chosen.only("pk", name, *field.bound_to)[:CHUNK])
    sealed = {}
    for row in chunk:
        if isinstance(row.__dict__[name], EncryptedSecret):
            try:
                sealed[row.pk] = _anew(field, row)
            except SecretUnreadable as error:
                unread[row.pk] = error
    # Not bulk_update(): it reads each secret, and an error report on it would show them.
    anew = [When(pk=pk, then=Value(secret, output_field=field)) for pk, secret in sealed.items()]
    found = rows.model._base_manager.using(rows.db).filter(pk__in=sealed)
    done = found.update(**{name: Case(*anew, output_field=field)}) if anew else 0
    return done, chunk[-1].pk if chunk else None


@sensitive_variables()
def _anew(field: Any, row: Any) -> EncryptedSecret:
    """Return the secret of ``row`` sealed with the first key, for this row."""
    purposes = field.purposes(row)
    return encrypt(row.__dict__[field.name].open(*purposes), purposes[0])


def _unreadable(model: Any, unread: dict[Any, SecretUnreadable]) -> SecretUnreadable:
    """Return the error that names these rows."""
    keys = ", ".join(map(str, list(unread)[:MAX_NAMED_ROWS])) + (" .." if len(unread) > MAX_NAMED_ROWS else "")
    why = str(next(iter(unread.values())))
    told = {"count": len(unread), "name": f"{model._meta.label} {keys}", "why": why}
    return SecretUnreadable(Sentence(gettext_noop("%(count)d not encrypted anew: %(name)s: %(why)s"), **told))


def with_row(row: Any, error: SecretUnreadable) -> SecretUnreadable:
    """Return the same error with the row that it is about."""
    return SecretUnreadable(sentence_for("about", name=f"{row._meta.label} {row.pk}", why=str(error)))

"""Sentences of the program: English text, stored as a code with parameters, localized when it is shown.

Logs, signals, errors and ``--json`` contain the English text, so that they can be searched and compared. Typed text is
an ordinary ``str`` and is shown unchanged (docs/reference/events.md).
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from resourcepool.translation import gettext, gettext_noop as _

# {code: template}. Released codes and their parameters never change, because stored rows contain them.
TEMPLATES = {
    # Parts of other sentences
    "and": _("%(item)s, %(rest)s"),
    "and_also": _("%(item)s; %(rest)s"),
    "about": _("%(name)s: %(why)s"),
    # Results of checks
    "ok": _("ok"),
    "bad": _("bad"),
    "unknown": _("unknown"),
    "check": _("check: %(why)s"),  # why a check quarantined a resource
    "good_again": _("found good by a check"),
    "connection_refused": _("refused the connection"),
    "login_refused": _("refused our login"),
    "login_refused_407": _("refused our login (407)"),
    "not_tunnelled": _("refused CONNECT (%(count)s)"),
    "target_not_reached": _("could not reach the target"),
    "host_not_connected": _("this host could not connect (%(error)s)"),
    "no_socks": _("does not support SOCKS5"),
    "no_connection": _("no connection (%(error)s)"),
    "no_connection_in_time": _("no connection in time"),
    "no_answer_in_time": _("no answer in time"),
    "no_proper_answer": _("invalid answer (%(error)s)"),
    "wrong_status": _("the answer had status %(count)s"),
    "wrong_text": _("the answer lacks the expected text"),
    "tls_failed": _("TLS failed: wrong or missing certificate"),
    "no_such_host": _("host %(host)s does not exist"),
    "host_not_looked_up": _("the name %(host)s could not be resolved"),
    "not_a_host_name": _("%(host)s is not a host name"),
    "not_public": _("%(host)s is not a public address; allow it in RESOURCEPOOL['CHECKS'] if intended"),
    "password_unreadable": _("its password cannot be decrypted"),
    "checker_stuck": _("the checker did not return in time"),
    "checker_failed": _("the checker failed (%(error)s)"),
    "target": _("the target: %(why)s"),
    "nothing_changed": _("%(why)s; those resources were not changed"),
    "failed_together": _("%(count)s of %(count_all)s failed together (%(count_times)s times: %(why)s)"),
    # Why a resource was not checked
    "busy_for_a_moment": _("briefly busy"),
    "in_use": _("in use"),
    "cooling": _("cooling down"),
    "not_quarantined_by_check": _("in a quarantine not set by a check"),
    "out_of_service": _("out of service"),
    "reserved": _("reserved"),
    "retired": _("retired"),
    "does_not_exist": _("does not exist"),
    # Outcome of a task
    "no_handler": _("no handler for type '%(name)s' in the consumer's process"),
    "has_not_run": _("the handler did not run: it returned a %(name)s"),
    "transaction_left": _("the handler left a transaction open on %(alias)s; it was rolled back"),
    "returned_false": _("the handler returned False"),
    "process_crashed": _("its process crashed or froze while running it (crashes: %(count)s)"),
    "timer_process_crashed": _("its process crashed or froze while handling it (crashes: %(count)s)"),
    "ran_too_long": _("it ran longer than its max_runtime of %(seconds)s s"),
    "bucket_expired": _("its bucket expired %(count)s times: its workers crashed or took too long"),
    "done_by": _("done by %(name)s"),
    "discarded": _("discarded by %(name)s: %(why)s"),
    "cancelled": _("cancelled by %(name)s"),
    # Removed messages
    "messages_removed": _("%(name)s: %(count)s messages removed"),
    "messages_missed": _("%(name)s: messages %(first)s to %(last)s were removed before they were read"),
    # Changed semaphores
    "resized": _("%(before)s to %(after)s permits: %(why)s"),
    # The end of a lease
    "taken": _("revoked, taken over or expired"),
    "row_deleted": _("its row was deleted"),
    "max_hold": _("held for max_hold=%(seconds)s s"),
    "not_renewed": _("not renewed within %(seconds)s s"),
    "not_renewed_in_ttl": _("not renewed within ttl=%(seconds)s s"),
    "acquired_since": _("since acquired by another holder"),
    "found_late": _("noticed %(seconds)s s after it expired"),
    "no_handle": _("no code refers to its handle"),
    "owner_ended": _("its thread or task ended without releasing it"),
    "held_long": _("held for more than %(seconds)s s"),
    "acquired_at": _("%(why)s, acquired at %(place)s"),
    "deleted_while_held": _("deleted while it was held"),
    "not_in_file": _("not in %(file)s"),
    "not_written": _("%(count)s events of this process were dropped: the write buffer was full"),
    # Results of jobs
    "removed": _("%(count)s removed"),
    "sample": _("%(count)s sample"),
    "samples": _("%(count)s samples"),
    "returned": _("%(count)s returned to service"),
    "lease_expired": _("%(count)s lease expired"),
    "leases_expired": _("%(count)s leases expired"),
    "overtaken": _("%(count)s of these since acquired by another holder"),
    "alarm": _("%(count)s alarm"),
    "alarms": _("%(count)s alarms"),
    "verdicts": _("%(count_ok)s ok, %(count_bad)s bad, %(count_unknown)s unknown"),
    "quarantined": _("%(count)s quarantined"),
    "taken_meanwhile": _("%(count)s revoked meanwhile"),
    "skipped": _("%(count)s skipped: %(why)s"),
    "used": _("%(count)s in use"),
    # Why a job failed
    "not_allowed": _("%(name)s=%(value)s is not allowed: %(why)s"),
    "must_be": _("it must be %(allowed)s"),
    "database": _("database %(alias)s: %(error)s"),
    "not_migrated": _("database %(alias)s: %(error)s; run `manage.py migrate`"),
    "row_locked": _(
        "database %(alias)s: a row is locked by another transaction, possibly a guard() of its holder; try again"
    ),
    "rows_locked": _(
        "database %(alias)s: %(count)s locked by another transaction, possibly a guard() of the holder;"
        " %(count_done)s changed; try again"
    ),
    "locked_by": _(
        "%(row)s is locked by session %(session)s from %(client)s, idle for %(count)s s; end it with: %(command)s"
    ),
    "locked_by_busy": _(
        "%(row)s is locked by session %(session)s from %(client)s, busy; end it with: %(command)s"
    ),
    "locked_by_unseen": _(
        "%(row)s is locked by a session that is unknown: several have locked rows, or this database user is not allowed"
        " to see it (MariaDB, MySQL: GRANT PROCESS)"
    ),
    # Why a queue moved
    "being_removed": _("it is being removed"),
    "had_no_owner": _("it had no owner"),
    "server_gone": _("its queue server is gone"),
    "work_finished": _("its owner finished its work"),
    "work_not_finished": _("%(server)s did not finish its work in time"),
    "given_up": _("released; the database did not confirm"),
    "requester_gone": _("the requesting queue server is gone"),
    "left": _("%(server)s left"),
    "came_back": _("%(server)s came back as %(taker)s"),
    "keeps": _("%(server)s keeps it"),
    "draining": _("%(server)s is draining"),
    "lacks": _("%(server)s lacks %(labels)s"),
    "presumed_dead": _("%(server)s presumed dead: no heartbeat for %(seconds)s s"),
    "evens_out": _("rebalanced: %(giver)s had %(count)s, %(taker)s %(count_taker)s"),
    "pinned": _("pinned to %(server)s"),
    "no_room": _("pinned to %(server)s, which has no room"),
}


class Sentence(str):
    """English text with its template and parameters::

        raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=10_000))  # _ is gettext_noop

    Only a sentence with a code (``sentence_for``) can be read back from a row; others are stored as English text.

    Attributes:
        code: its key in ``TEMPLATES``; "": none.
        parameters: numbers, texts, other sentences, and tuples of these, which become lines.
    """

    __slots__ = ("code", "parameters", "template")

    template: str
    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, template: str, code: str = "", /, **parameters: Any) -> "Sentence":
        """Make a sentence; ``parameters``: the values of the placeholders in ``template``."""
        self = super().__new__(cls, template % _formatted(parameters))
        self.template, self.code, self.parameters = template, code, parameters
        return self

    def __str__(self) -> str:
        return self  # so that str() of an exception with it is a Sentence, too

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], Mapping[str, Any]]:
        return (self.template, self.code), self.parameters  # for pickling

    def replaced(self, others: Mapping[Any, Any]) -> "Sentence":
        """Return a copy with each parameter that is a key of ``others`` replaced by its value."""
        parameters = {name: others.get(value, value) for name, value in self.parameters.items()}
        return Sentence(self.template, self.code, **parameters)

    def localized(self) -> str:
        """Return the text in the active language."""
        return gettext(self.template) % _formatted(
            {name: _localized(value) for name, value in self.parameters.items()}
        )


def sentence_for(code: str, /, **parameters: Any) -> Sentence:
    """Return the sentence of ``code``, which can be stored; raises KeyError for an unknown code or parameter."""
    return Sentence(TEMPLATES[code], code, **parameters)


def joined(items: Sequence[str], code: str = "and_also") -> str:
    """Return the items as one sentence, joined by semicolons ("and_also") or commas ("and"); "" without items."""
    return (
        reduce(lambda rest, item: sentence_for(code, item=item, rest=rest), items[-2::-1], items[-1])
        if items
        else ""
    )


def localized(text: object) -> str:
    """Return a sentence, or an exception made with one, in the active language; other text unchanged."""
    full = str(text)
    return full.localized() if isinstance(full, Sentence) else full


def _localized(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_localized, value))
    return localized(value) if isinstance(value, str) else value


def _formatted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _text(value) for name, value in parameters.items()}


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return "\n".join(f"  {line}" for line in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:,g}"  # never 3.1536e+08
    return value

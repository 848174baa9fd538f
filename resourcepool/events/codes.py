"""The sentences that rows keep: {code: template}.

Released codes and the names of their parameters never change: rows contain them.
"""

from django.utils.translation import gettext_noop as _

TEMPLATES = {
    # Parts of others
    "and": _("%(item)s, %(rest)s"),
    "and_also": _("%(item)s; %(rest)s"),
    "about": _("%(name)s: %(why)s"),
    # Results of checks
    "ok": _("ok"),
    "bad": _("bad"),
    "unknown": _("unknown"),
    "check": _("check: %(why)s"),  # why a check has put a resource in quarantine
    "good_again": _("the check found it good"),
    "connection_refused": _("refused the connection"),
    "login_refused": _("refused our login"),
    "login_refused_407": _("refused our login (407)"),
    "not_tunnelled": _("would not connect us (%(count)s)"),
    "target_not_reached": _("could not reach the target, or would not"),
    "host_not_connected": _("this host could not connect (%(error)s)"),
    "no_socks": _("does not speak SOCKS5"),
    "no_connection": _("no connection (%(error)s)"),
    "no_connection_in_time": _("no connection in time"),
    "no_answer_in_time": _("no answer in time"),
    "no_proper_answer": _("no proper answer (%(error)s)"),
    "wrong_status": _("the answer was %(count)s"),
    "wrong_text": _("the answer does not have the text it should have"),
    "tls_failed": _("TLS failed: a wrong certificate, or none"),
    "no_such_host": _("there is no host %(host)s"),
    "host_not_looked_up": _("the name %(host)s could not be looked up"),
    "not_a_host_name": _("%(host)s is no host's name"),
    "not_public": _("%(host)s is not a public address; allow it in RESOURCEPOOL['CHECKS'] if that is meant"),
    "password_unreadable": _("its password cannot be decrypted"),
    "checker_stuck": _("the checker did not come back in time"),
    "checker_failed": _("the checker failed (%(error)s)"),
    "target": _("the target: %(why)s"),
    "nothing_changed": _("%(why)s; nothing was changed about these"),
    "failed_together": _("%(count)s of %(count_all)s failed together (%(count_times)s times: %(why)s)"),
    # Why something was not checked
    "busy_for_a_moment": _("busy for a moment"),
    "in_use": _("in use"),
    "cooling": _("cooling down"),
    "not_quarantined_by_check": _("in a quarantine that no check decided"),
    "out_of_service": _("out of service"),
    "reserved": _("reserved"),
    "retired": _("retired"),
    "does_not_exist": _("not there any more"),
    # What became of a task
    "no_handler": _("no handler for type '%(name)s' in the consumer's process"),
    "has_not_run": _("the handler has not run: it returned a %(name)s"),
    "transaction_left": _("the handler left a transaction open on %(alias)s; it is rolled back"),
    "returned_false": _("the handler returned False"),
    "process_crashed": _("its process died or stood still while running it (deaths: %(count)s)"),
    "timer_process_crashed": _("its process died or stood still while handling it (deaths: %(count)s)"),
    "ran_too_long": _("it ran longer than its max_runtime of %(seconds)s s"),
    "key_unreadable": _("its key cannot be read by the factory of the worker: %(error)s"),
    "bucket_expired": _("its bucket expired %(count)s times: its workers died, or took too long"),
    "done_by": _("done by %(name)s"),
    "discarded": _("discarded by %(name)s: %(why)s"),
    "cancelled": _("cancelled by %(name)s"),
    # What became of messages
    "messages_removed": _("%(name)s: %(count)s messages removed"),
    "messages_missed": _("%(name)s: messages %(first)s to %(last)s were removed before they were read"),
    # What became of a semaphore
    "resized": _("%(before)s to %(after)s permits: %(why)s"),
    # The end of a lease
    "taken": _("another holder or an operator took it, or it ran out"),
    "row_deleted": _("its row was deleted"),
    "max_hold": _("held for max_hold=%(seconds)s s"),
    "not_renewed": _("not renewed within %(seconds)s s"),
    "not_renewed_in_ttl": _("not renewed within ttl=%(seconds)s s"),
    "acquired_since": _("somebody else has acquired it since"),
    "found_late": _("found %(seconds)s s after it ran out"),
    "no_handle": _("nobody has its handle any more"),
    "owner_ended": _("its thread or task ended without releasing it"),
    "held_long": _("held for more than %(seconds)s s"),
    "acquired_at": _("%(why)s, acquired at %(place)s"),
    "deleted_while_held": _("deleted while it was held"),
    "not_in_file": _("not in %(file)s"),
    "not_written": _("%(count)s events of this process were not written down: too many waited"),
    # Results of jobs
    "removed": _("%(count)s removed"),
    "sample": _("%(count)s sample"),
    "samples": _("%(count)s samples"),
    "returned": _("%(count)s returned to service"),
    "lease_expired": _("%(count)s lease ran out"),
    "leases_expired": _("%(count)s leases ran out"),
    "overtaken": _("%(count)s of these overtaken"),
    "alarm": _("%(count)s alarm"),
    "alarms": _("%(count)s alarms"),
    "verdicts": _("%(count_ok)s ok, %(count_bad)s bad, %(count_unknown)s unknown"),
    "quarantined": _("%(count)s quarantined"),
    "taken_meanwhile": _("%(count)s taken away meanwhile"),
    "skipped": _("%(count)s skipped: %(why)s"),
    "used": _("%(count)s in use"),
    # Why a job failed
    "not_allowed": _("%(name)s=%(value)s is not allowed: %(why)s"),
    "must_be": _("it must be %(allowed)s"),
    "database": _("database %(alias)s: %(error)s"),
    "not_migrated": _("database %(alias)s: %(error)s; run `manage.py migrate`"),
    "row_locked": _(
        "database %(alias)s: a row is locked by somebody's transaction, perhaps its holder's (guard); try again in a"
        " moment"
    ),
    "rows_locked": _(
        "database %(alias)s: %(count)s locked by somebody's transaction, perhaps the holder's (guard); %(count_done)s"
        " done; try again in a moment"
    ),
    "locked_by": _(
        "%(row)s is locked by session %(session)s from %(client)s, idle for %(count)s s, ended by: %(command)s"
    ),
    "locked_by_busy": _(
        "%(row)s is locked by session %(session)s from %(client)s, busy, ended by: %(command)s"
    ),
    "locked_by_unseen": _(
        "%(row)s is locked by a session that this database user may not see (MariaDB, MySQL: GRANT PROCESS)"
    ),
    # Why a queue went from server to server
    "being_removed": _("it is being removed"),
    "had_no_owner": _("nobody had it"),
    "server_gone": _("its server is gone"),
    "work_finished": _("its owner had finished its work on it"),
    "work_not_finished": _("%(server)s did not finish its work on it in time"),
    "given_up": _("given up, without an answer from the database"),
    "requester_gone": _("whoever asked for it is gone"),
    "left": _("%(server)s left"),
    "came_back": _("%(server)s came back as %(taker)s"),
    "keeps": _("%(server)s keeps it"),
    "draining": _("%(server)s is draining"),
    "lacks": _("%(server)s lacks %(labels)s"),
    "presumed_dead": _("%(server)s was judged dead: no heartbeat for %(seconds)s s"),
    "evens_out": _("evens out: %(giver)s had %(count)s, %(taker)s %(count_taker)s"),
    "pinned": _("pinned to %(server)s"),
    "no_room": _("pinned to %(server)s, which has no room"),
}

"""The sentences that the program writes into rows, events and errors, to be recognised when they are shown.

Places: "%(count)s" and "%(count_..)s" are numbers, "%(why)s" may be one of these sentences again, all others are any
text. The first one that fits is taken, so the general ones come last. A test finds those that are missing.
"""

from django.utils.translation import gettext_noop as _

# Why a check says what it says, and what quarantines because of it give as their reason.
CHECKS = (
    _("refused the connection"),
    _("refused our login"),
    _("refused our login (407)"),
    _("would not connect us (%(count)s)"),
    _("could not reach the target, or would not"),
    _("this host could not connect (%(error)s)"),
    _("does not speak SOCKS5"),
    _("no connection (%(error)s)"),
    _("no connection in time"),
    _("no answer in time"),
    _("no proper answer (%(error)s)"),
    _("the answer was %(count)s"),
    _("the answer does not have the text it should have"),
    _("TLS failed: a wrong certificate, or none"),
    _("there is no host %(host)s"),
    _("the name %(host)s could not be looked up"),
    _("%(host)s is no host's name"),
    _("%(host)s is not a public address; allow it in RESOURCEPOOL['CHECKS'] if that is meant"),
    _("its password cannot be decrypted"),
    _("the checker did not come back in time"),
    _("the checker failed (%(error)s)"),
    _("in use, or out of service"),  # of earlier versions
    _("busy for a moment"),
    _("in use"),
    _("cooling down"),
    _("in a quarantine that no check decided"),
    _("out of service"),
    _("reserved"),
    _("not there any more"),
    _("the target: %(why)s"),
    _("%(why)s; nothing was changed about these"),
    _("%(count)s of %(count_all)s failed together (%(count_times)s times: %(why)s)"),
    _("check: %(why)s"),
    _("ok"),
    _("bad"),
    _("unknown"),
    _("bad: %(why)s"),
    _("unknown: %(why)s"),
)

# Why a lease ended, or seems forgotten.
LEASES = (
    _("the check found it good"),
    _("somebody else has acquired it since"),
    _("found %(seconds)s s after it ran out"),
    _("another holder or an operator took it, or it ran out"),
    _("held for max_hold=%(seconds)s s"),
    _("not renewed within ttl=%(seconds)s s"),
    _("nobody has its handle any more"),
    _("nobody has its handle any more, acquired at %(place)s"),
    _("held for more than %(seconds)s s, acquired at %(place)s"),
    _("held for more than %(seconds)s s"),
    _("not in %(file)s"),
    _("retired"),
    _("%(count)s events of this process were not written down: too many waited"),
)

# What jobs are called, and what came of them.
JOBS = (
    _("sweep"),
    _("statistics"),
    _("prune history"),
    _("being done elsewhere"),
    _("%(count)s removed"),
    _("%(count)s sample"),
    _("%(count)s samples"),
    _("%(count)s lease ran out"),
    _("%(count)s leases ran out"),
    _("%(count)s of these overtaken"),
    _("%(count)s alarm"),
    _("%(count)s alarms"),
    _("%(count_ok)s ok, %(count_bad)s bad, %(count_unknown)s unknown"),
    _("%(count)s quarantined"),
    _("%(count)s returned to service"),
    _("%(count)s skipped: %(why)s"),
    _("%(count)s skipped"),
    _("%(count)s taken away meanwhile"),
    _("%(count)s in use"),
    _("quarantined"),
    _("returned"),
    _("lost"),
)

# Why a queue went from server to server.
MOVES = (
    _("it is being removed"),
    _("nobody had it"),
    _("its server is gone"),
    _("its owner had finished its work on it"),
    _("given up, without an answer from the database"),
    _("whoever asked for it is gone"),
    _("%(server)s #%(count)s left"),
    _("%(server)s #%(count)s came back as %(taker)s"),
    _("%(server)s #%(count)s keeps it"),
    _("%(server)s #%(count)s is draining"),
    _("%(server)s #%(count)s lacks %(labels)s"),
    _("%(server)s #%(count)s did not finish its work on it in time"),
    _("%(server)s #%(count)s was judged dead: no heartbeat for %(seconds)s s"),
    _("evens out: %(giver)s had %(count)s, %(taker)s %(count_taker)s"),
    _("pinned to %(server)s, which has no room"),
    _("pinned to %(server)s"),
)

# What is allowed where task types, queues and servers are meant; before "one of ..".
QUEUES = (
    _("one of %(names)s; %(command)s makes one"),
    _("there is none yet; %(command)s makes one"),
    _("there is one of this name already"),
    _("it has no queues; add some: %(command)s"),
    _("each queue once"),
    _("at most %(count)s at once"),
    _("text of at most %(count)s characters"),
    _("there is no server now"),
    _('a dict of texts, e.g. {"zone": "eu"}'),
    _("a range that goes up, such as 0..63"),
    _("no two dots in it; a range is such as 0..63 or eu-00..15"),
    _("its name alone, without the number: %(name)s"),
    _("KEY=VALUE, such as zone=eu, each key once"),
    _("NAME or NAME:WEIGHT, such as web-4:2"),
    _("only with --new; later the admin changes it"),
    _("without --label"),
    _("with --parameter, --label or --no-label"),
    _("with another parameter or other labels"),
    _("it was there a moment ago"),
    _("a server's name; `unpin` ends a pin"),
)

# What is allowed where something is refused.
ALLOWED = (
    _("True or False"),
    _("a dict"),
    _("one line of text, 1 to %(count)s printable characters"),
    _("a whole number from %(count_least)s to %(count_most)s"),
    _("seconds or a timedelta, from %(least)s to %(most)s seconds"),
    _("words of 1 to 50 of the characters a-z 0-9 . _ : / = -"),
    _("%(tag)s is not a tag; allowed: words of 1 to 50 of the characters a-z 0-9 . _ : / = -"),
    _("%(count)s characters in all; at most %(count_most)s"),
    _("FIELD=VALUE, such as country=US"),
    _("a resource or a holder"),
    _("nothing says how to check them; see docs/validity.md"),
    _("without django_celery_beat; add it, and run `pip install django-celery-beat` and `manage.py migrate`"),
    _("1 to %(count)s values"),
    _("a primary key of %(pool)s"),
    _("no %(pool)s has it"),
    _("a value for %(field)s"),
    _("name %(columns)s, too: changed here"),
    _("no such selector; %(pool)s has: %(fields)s"),
    _("one of %(names)s"),
)

# Why a file, or a line of it, was not imported; how far an import is.
IMPORTS = (
    _("missing"),
    _("empty: there are no proxies in it"),
    _("empty: there is a header, but no proxy"),
    _("cannot be read: %(error)s"),
    _("closed"),
    _("UTF-16 text; save it as UTF-8"),
    _("too large: at most %(count_lines)s lines and %(count_bytes)s MB; split it"),
    _("line %(count)s, byte %(count_byte)s is a NUL: this is a binary file, not text"),
    _("line %(count)s is longer than %(count_most)s bytes: this is no list of proxies"),
    _("line %(count)s, byte %(count_byte)s: %(byte)s is not UTF-8; save the file as UTF-8"),
    _("line %(count)s has a carriage return in the middle; save the file with Unix or Windows line ends"),
    _("line %(count)s: the quotes of this CSV row do not match (%(error)s)"),
    _("the header has unknown columns: %(names)s; there are: %(known)s"),
    _("the header has unknown columns; there are: %(known)s"),
    _("the header has a column twice: %(names)s"),
    _("the header has url and %(names)s, which url already says"),
    _("the header lacks %(names)s (or url)"),
    _("not imported, because somebody else has entered some of the same proxies meanwhile; try again"),
    _("nothing was imported; bad lines: %(count)s"),
    _("and %(count)s more"),
    _("line %(count)s (%(host)s): %(field)s: %(why)s"),
    _("line %(count)s: %(field)s: %(why)s"),
    _("not one of %(names)s"),
    _("not ASCII; write an international name in its xn-- form"),
    _("not a host name or an IP address (at most %(count)s characters)"),
    _("not an %(kind)s address"),
    _("not at most %(count)s printable characters without blanks around them"),
    _("not at most %(count)s characters without control characters"),
    _("not two letters such as US"),
    _("not words of 1 to 50 of the characters a-z 0-9 . _ : / = -"),
    _("longer than %(count)s characters in all"),
    _("not a whole number from 1 to %(count)s"),
    _("can be read in two ways; write scheme://user:password@host:port, with %%3A for :"),
    _("looks like CSV, which begins with a header such as host,port,username,password"),
    _("not %(forms)s; an IPv6 address is written in brackets: [::1]:8080"),
    _("a / ? or # in the user name or password is written %%2F %%3F %%23"),
    _("something follows the port"),
    _("missing; it follows the bracket and a colon: [::1]:8080"),
    _("more than one colon; an IPv6 address is written in brackets: [::1]:8080"),
    _("its percent-encoding is not UTF-8"),
    _("%(count)s cells, but the header has %(count_columns)s (a cell with a %(delimiter)s in it needs quotes)"),
    _("the same scheme, host, port and username as line %(count)s"),
    _("read %(count)s"),
    _("compared %(count)s"),
    _("encrypted %(count)s of %(count_all)s"),
    _("stored %(count)s of %(count_all)s"),
    _("changed %(count)s of %(count_all)s"),
)

ERRORS = (
    _("BadOption: %(why)s"),  # before what would take the class for a part of the option's name
    _("CheckerBroken: %(why)s"),
    _("DatabaseUnavailable: %(why)s"),
    _(
        "there is no key for secrets: put a key first in the list RESOURCEPOOL['SECRET_KEYS'];"
        " make one with: %(command)s"
    ),
    _(
        "one of the %(count)s keys for secrets is not a Fernet key: put a key first in the list"
        " RESOURCEPOOL['SECRET_KEYS']; make one with: %(command)s"
    ),
    _(
        "none of the keys in RESOURCEPOOL['SECRET_KEYS'] decrypts this secret: was a key removed, or was it stored for"
        " another row?"
    ),
    _("database %(alias)s: %(error)s; run `manage.py migrate`"),
    _(
        "database %(alias)s: a row is locked by somebody's transaction, perhaps its holder's (guard); try again in a"
        " moment"
    ),
    _(
        "database %(alias)s: a row is locked by somebody's transaction, perhaps its holder's (guard); try again in a"
        " moment: %(why)s"
    ),
    _(
        "database %(alias)s: %(count)s locked by somebody's transaction, perhaps the holder's (guard); %(count_done)s"
        " done; try again in a moment"
    ),
    _(
        "database %(alias)s: %(count)s locked by somebody's transaction, perhaps the holder's (guard); %(count_done)s"
        " done; try again in a moment: %(why)s"
    ),
    _("%(row)s is locked by session %(session)s from %(client)s, idle for %(count)s s, ended by: %(command)s"),
    _("%(row)s is locked by session %(session)s from %(client)s, busy, ended by: %(command)s"),
    _("%(row)s is locked by a session that this database user may not see (MariaDB, MySQL: GRANT PROCESS)"),
    _("database %(alias)s: %(error)s"),
    _("run `manage.py migrate`"),
    # Whole, because people write such things, too.
    _("%(name)s=%(value)s is not allowed: %(task_type)s has it already"),
    _("%(name)s=%(value)s is not allowed: %(task_type)s has them already"),
    _("%(name)s=%(value)s is not allowed: %(task_type)s has no such queue"),
    _("%(name)s=%(value)s is not allowed: %(task_type)s has no such queues"),
    _("%(name)s=%(value)s is not allowed: %(why)s"),
)

# Something of somebody's before one of the others: only if that is known, because people write such things, too.
AFTER_A_NAME = (_("%(name)s: %(why)s"),)

# What stands between the items of a list of them, the longest items first.
BETWEEN = ("\n", _("; "), _(", "))

PHRASES = (*CHECKS, *LEASES, *JOBS, *MOVES, *QUEUES, *ALLOWED, *IMPORTS, *ERRORS, *AFTER_A_NAME)

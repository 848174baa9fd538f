"""``manage.py resourcepool_fix``: quarantines bad resources, and returns good ones to service."""

from resourcepool.management.commands import resourcepool_check
from resourcepool.translation import gettext_lazy


class Command(resourcepool_check.Command):
    about = gettext_lazy(
        "Checks the given resources, or all that are not leased. Bad ones are quarantined; good ones in any"
        " quarantine return to service (resourcepool_check ends only quarantines set by a check). A bad"
        " resource in a quarantine not set by a check stays as it is. If many fail together, the checker is"
        " assumed to be broken and nothing is changed."
    )
    exit_codes = gettext_lazy(
        "Exit codes: 0 done; 1 refused; 2 checker seems broken, or usage error; 3 running in another"
        " process; 130 interrupted."
    )
    example = (
        "manage.py resourcepool_fix proxy 17\n"
        "manage.py resourcepool_fix proxy --dry-run\n"
        "manage.py resourcepool_fix proxy --believe"
    )
    any_quarantine = True
    bad_is_error = False

"""``manage.py resourcepool_fix``: put the bad resources away, and return the good ones (R0.6)."""

from django.utils.translation import gettext_lazy

from resourcepool.management.commands import resourcepool_check


class Command(resourcepool_check.Command):
    about = gettext_lazy(
        "Checks the given resources, or all that nobody holds: the bad ones are put in quarantine, and whatever is in"
        " quarantine and found good is returned to service, whoever put it there (resourcepool_check returns only what"
        " a check has put there). What is found bad in a quarantine that no check decided stays there as it is. If"
        " many fail together, the checker is blamed and nothing is changed."
    )
    exit_codes = gettext_lazy(
        "Exit codes: 0 done; 1 refused; 2 the checker seems broken, or not understood; 3 being done elsewhere;"
        " 130 interrupted."
    )
    example = (
        "manage.py resourcepool_fix proxy 17\n"
        "manage.py resourcepool_fix proxy --dry-run\n"
        "manage.py resourcepool_fix proxy --believe"
    )
    any_quarantine = True
    bad_is_error = False

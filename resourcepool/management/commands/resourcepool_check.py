"""``manage.py resourcepool_check``: are the resources still usable?"""

from typing import Any

from django.utils.translation import gettext_lazy

from resourcepool.management.checking import CheckingCommand


class Command(CheckingCommand):
    about = gettext_lazy(
        "Checks resources that nobody holds, as RESOURCEPOOL['CHECKS'] says, and prints a line for each. Those found"
        " bad are put in quarantine, those that an earlier check had put there are returned if they are good. If many"
        " fail together, the checker is blamed and nothing is changed."
    )
    codes = gettext_lazy(
        "Exit codes: 0 none is bad; 1 at least one is bad, or refused; 2 the checker seems broken, or not understood;"
        " 3 being done elsewhere; 130 interrupted."
    )
    example = (
        "manage.py resourcepool_check\n"
        "manage.py resourcepool_check proxy 17 18 --dry-run\n"
        "manage.py resourcepool_check proxy --json"
    )

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        super().run(**options)
        if self.bad:
            raise SystemExit(1)

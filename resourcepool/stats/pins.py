"""Whether there is anybody whom a pin names."""

from django.utils.translation import gettext as _

from resourcepool.queues.labels import listed, printable
from resourcepool.stats.queues import task_type


def no_such_server(name: str, server: str) -> str:
    """Return a hint that nobody of that name is there now; "": somebody is. A pin may be meant for one that is to come.

    Args:
        name: of the task type.
        server: whom its queues are pinned to; "": nobody.
    """
    there = sorted({one.name for one in task_type(name).alive})
    if not server or server in there:
        return ""
    text = _("No server is called %(server)s now (there are: %(there)s).")
    return text % {"server": printable(server), "there": listed(there) or _("none")}

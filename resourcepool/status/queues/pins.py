"""Whether there is a server that a pin names."""

from django.utils.translation import gettext as _

from resourcepool.labels import listed, printable
from resourcepool.status.queues.task_types import task_type


def no_such_server(name: str, server: str) -> str:
    """Return a hint that there is no server of that name now; "": there is one. A pin may be for a future server.

    Args:
        name: of the task type.
        server: the name its queues are pinned to; "": none.
    """
    there = sorted({one.name for one in task_type(name).alive})
    if not server or server in there:
        return ""
    text = _("No server is called %(server)s now (there are: %(there)s).")
    return text % {"server": printable(server), "there": listed(there) or _("none")}

"""What the surfaces show of elections."""

from resourcepool.status.elections import ELECTIONS
from resourcepool.status.sections import LOCKS
from resourcepool.status.system import NamedSystem, Panel, count, gauge, seconds, text
from resourcepool.translation import gettext_lazy as _, gettext_noop

SYSTEM = NamedSystem(
    reader=ELECTIONS,
    figures=(
        text(_("election"), "name"),
        gauge("led", "Whether there is a leader.", lambda one: bool(one.leader)),
        text(_("leader"), "leader"),
        count(_("term"), "term", gauge=("term", "The number of the last term.")),
        seconds(_("leading for"), "since"),
        seconds(_("expires in"), "expires_in"),
        count(_("standbys"), "standbys", gauge=("standbys", "Number of standbys.")),
    ),
    section=LOCKS,
    none_yet=gettext_noop("No elections yet: the first campaign creates its election."),
    panel=Panel(_("Elections"), _("one leader each"), order=55, id_prefix="rpe"),
)

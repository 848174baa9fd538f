"""What the dashboard shows of dispensers: a line for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from resourcepool.dashboard.links import Links
from resourcepool.status.dispensers import DispenserStatus, page_of_dispensers
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask

State = DispenserTask.State


@dataclass(frozen=True, slots=True)
class DispenserRow:
    """One dispenser.

    Attributes:
        id: of its link on the page.
        state: "up", "late" (paused) or "dead" (tasks, but no worker), for the style sheet.
        page, ready, assigned, failed, buckets: addresses of its page, and of these lists; "" when there is none.
    """

    id: str
    one: DispenserStatus
    state: str
    page: str
    ready: str
    assigned: str
    failed: str
    buckets: str


@dataclass(frozen=True, slots=True)
class DispenserPanel:
    """The first dispensers by name; ``every``: the address of the list of all, where not all are shown, else ""."""

    rows: Sequence[DispenserRow] = ()
    has_more: bool = False
    every: str = ""


def dispenser_panel(links: Links) -> DispenserPanel:
    """Return a line for each of the first dispensers: five queries, one if there is none."""
    found, after = page_of_dispensers()
    rows = [_row(number, one, links) for number, one in enumerate(found)]
    return DispenserPanel(rows, bool(after), links.list(Dispenser) if after else "")


def _row(number: int, one: DispenserStatus, links: Links) -> DispenserRow:
    def tasks(state: State) -> str:
        return links.list(DispenserTask, dispenser=one.name, state=state.value)

    return DispenserRow(
        id=f"rpd{number}",
        one=one,
        state="late" if one.is_paused else "dead" if one.depth and one.because else "up",
        page=links.page(Dispenser, one.name),
        ready=tasks(State.READY),
        assigned=tasks(State.ASSIGNED),
        failed=tasks(State.FAILED),
        buckets=links.list(Bucket, dispenser=one.name),
    )

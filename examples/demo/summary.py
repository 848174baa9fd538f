"""Says in a few lines what the witness found."""

from collections.abc import Iterator

from rich.console import Console

from .witness import Ban, Kill, Report


def print_summary(console: Console, report: Report) -> None:
    console.print("\n[bold]What the target site saw[/] (from its own log alone)")
    for title, value in lines(report):
        console.print(f"  {title:<36}{value}")
    for clash in [*report.overlapping_requests, *report.overlapping_sessions, *report.fences_out_of_order][:3]:
        console.print(f"    for example {clash}")
    problems = report.problems()
    if problems:
        console.print("\n[bold red]FAILED[/]: the log shows what must never happen.")
        for problem in problems:
            console.print(f"  {problem}")
    else:
        console.print("\n[bold green]OK[/]: no proxy was ever used by two crawlers at a time.")


def lines(report: Report) -> Iterator[tuple[str, str]]:
    """Title and value of each line."""
    who = f"{len(report.crawlers)} crawlers through {len(report.proxies)} proxies"
    yield "pages fetched", f"{report.pages} by {who}, {report.seconds:.0f} s"
    yield "requests overlapping on one proxy", f"{len(report.overlapping_requests)} of {len(report.requests)}"
    yield "leases overlapping on one proxy", f"{len(report.overlapping_sessions)} of {len(report.sessions)}"
    yield "fences that did not rise", str(len(report.fences_out_of_order))
    yield "crawlers killed with SIGKILL", _killed(report.kills)
    yield "their proxies in use again after", _idle(report.kills)
    yield "proxies banned and quarantined", _banned(report.bans)


def _killed(kills: list[Kill]) -> str:
    return f"{len(kills)}, with a request under way: {sum(kill.in_flight for kill in kills)}"


def _idle(kills: list[Kill]) -> str:
    if not kills:
        return "-"
    each = ", ".join("never" if kill.idle is None else f"{kill.idle:.1f}" for kill in kills)
    known = [kill.idle for kill in kills if kill.idle is not None]
    return each + (f" s; at most {max(known):.1f} s" if known else "")


def _banned(bans: list[Ban]) -> str:
    """A quarantined proxy is one that the site saw nobody else use again."""
    quarantined = sum(not ban.later_requests for ban in bans)
    names = ", ".join(ban.proxy for ban in bans)
    return f"{len(bans)} and {quarantined}" + (f" ({names})" if names else "")

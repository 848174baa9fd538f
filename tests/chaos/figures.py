"""The figures of a run: faults injected, work done, durations."""

from collections.abc import Iterator, Sequence

from tests.chaos.story import BACK, Span, Story
from tests.chaos.takeover import Takeover
from tests.concurrency.judge import Verdict

BRIEF = 2.0


def thrown(story: Story) -> dict[str, int]:
    """Return how often each thing was done to the workers."""
    stops = [stop.span.end - stop.span.start for life in story.lives.values() for stop in life.stops]
    shifts = [event.text for event in story.events if event.what == "started"]
    return {
        "workers started": len(shifts),
        "of these with the clock +1 h": shifts.count("+1h"),
        "of these with the clock -1 h": shifts.count("-1h"),
        "kill -9": story.counts["killed"],
        "SIGSTOP for a moment": sum(seconds < BRIEF for seconds in stops),
        "SIGSTOP for longer than the ttl": sum(seconds >= BRIEF for seconds in stops),
        "server killed -9 and restarted": len(story.outages),
        "connections cut": story.counts["cut"],
        "replies lost after the statement took effect": story.counts["reply_lost"],
        "statements that arrived after the ttl": story.counts["held_up"],
    }


def counted(story: Story, verdict: Verdict, takeovers: Sequence[Takeover]) -> dict[str, float | int | None]:
    """Return what the workers did and saw; durations in seconds."""
    after = sorted(one.taken_at - one.expiry for one in takeovers if one.is_undisturbed)
    back, signs = list(_first_grants(story)), sorted(_first_signs(story))
    idle = sorted(to - since for since, to in verdict.idle)
    waits = sorted(use.start - use.asked_at for use in verdict.uses if use.asked_at)
    return {
        "acquisitions": story.counts["acquired"],
        "guarded writes committed": story.counts["wrote"],
        "guarded writes refused: lease lost": story.counts["refused"],
        "guarded writes cut short by the connection": story.counts["cut_short"],
        "leases lost, reported": story.counts["lost"],
        "DatabaseUnavailable": story.counts["unavailable"],
        "AcquireTimeout": story.counts["timed_out"],
        "rows of killed holders": len(takeovers),
        "of these taken again with nothing to excuse a delay": len(after),
        "taken again, after the ttl: median": _at(after, 0.5),
        "taken again, after the ttl: p99": _at(after, 0.99),
        "taken again, after the ttl: longest": _at(after, 1),
        "taken later, like released rows": sum(one.is_slow and not one.is_late for one in takeovers),
        "released, granted again: median": _at(idle, 0.5),
        "released, granted again: p99": _at(idle, 0.99),
        "wait for a row: median": _at(waits, 0.5),
        "wait for a row: p99": _at(waits, 0.99),
        "server back: first grant, worst": max(back, default=None),
        "server back: last worker at work, worst": _at(signs, 1),
        "threads in a worker: most": max((int(e.text) for e in story.events if e.what == "left"), default=None),
        "moments the machine was too busy for us": len(story.stalls),
    }


def _at(ordered: Sequence[float], share: float) -> float | None:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) if ordered else None


def _first_grants(story: Story) -> Iterator[float]:
    for outage in story.outages:
        grants = (e.at - outage.end for e in story.events if e.what == "acquired" and e.at > outage.end)
        first = next(grants, None)
        if first is not None:
            yield round(first, 3)


def _first_signs(story: Story) -> Iterator[float]:
    for outage in story.outages:
        window = Span(outage.end, outage.end + BACK)
        for life in story.lives.values():
            sign = life.first_sign(window) if life.could_run(window) else None
            if sign is not None:
                yield sign

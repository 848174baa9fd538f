"""The problems on the dashboard: alarms by gravity and system, each with the operations that most likely end it."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.apps import apps
from django.utils.text import capfirst

from resourcepool.dashboard.links import Button, Links, system_of
from resourcepool.jobs import Job
from resourcepool.status.alarm import Alarm, AlarmKind
from resourcepool.status.alarms import Snooze, key_of

MAX_ALARMS = 100
MAX_BUTTONS = 2
WAITING = (AlarmKind.NOTHING_IN_SERVICE, AlarmKind.EXHAUSTED, AlarmKind.STARVED, AlarmKind.LOCK_WAIT)


@dataclass(frozen=True, slots=True)
class Problem:
    """One alarm.

    Attributes:
        url: of the row that it is about, or of the list that shows it; "": none.
        waiting: URL of the page of waiters; "": it affects no waiter.
        snooze: who snoozed it; None: it is not snoozed.
    """

    alarm: Alarm
    id: str
    url: str
    buttons: Sequence[Button]
    waiting: str = ""
    snooze: Snooze | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The problems of one system or pool."""

    title: str
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class Problems:
    """All problems; in each list the gravest system comes first, and in it the gravest problem."""

    critical: Sequence[Group]
    warnings: Sequence[Group]
    snoozed: Sequence[Group]
    more: int = 0

    @property
    def sections(self) -> list[tuple[str, str, int, Sequence[Group]]]:
        """(name, CSS class of a message, number of problems, groups) of each list that is not empty."""
        lists = (
            ("critical", "error", self.critical),
            ("warnings", "warning", self.warnings),
            ("snoozed", "info", self.snoozed),
        )
        return [(name, css, _count(groups), groups) for name, css, groups in lists if groups]

    @property
    def counts(self) -> dict[str, int]:
        """{name of a section: number of its problems}."""
        return {name: count for name, _css, count, _groups in self.sections}


def problems(
    alarms: Sequence[Alarm], snoozed: Mapping[str, Snooze], links: Links, partly_out: Container[str] = ()
) -> Problems:
    """Return the first ``MAX_ALARMS`` of ``alarms``, which come worst first, as problems.

    Args:
        partly_out: the labels of the pools with resources out of service.
    """
    links.load((apps.get_model(alarm.model), alarm.key) for alarm in alarms[:MAX_ALARMS] if alarm.key)
    every = [
        _problem(f"rp-problem-{number}", alarm, snoozed.get(key_of(alarm.id)), links, alarm.pool in partly_out)
        for number, alarm in enumerate(alarms[:MAX_ALARMS], start=1)
    ]
    open_ones = [problem for problem in every if not problem.snooze]
    return Problems(
        critical=_grouped(problem for problem in open_ones if problem.alarm.is_severe),
        warnings=_grouped(problem for problem in open_ones if not problem.alarm.is_severe),
        snoozed=_grouped(problem for problem in every if problem.snooze),
        more=max(0, len(alarms) - MAX_ALARMS),
    )


def _problem(html_id: str, alarm: Alarm, snooze: Snooze | None, links: Links, is_partly_out: bool) -> Problem:
    waiting = links.page("waiting", of=_line_of(alarm)) if alarm.kind in WAITING else ""
    buttons = links.buttons_for_alarm(alarm)
    if alarm.kind is AlarmKind.EXHAUSTED and is_partly_out:
        buttons += links.return_to_service(apps.get_model(alarm.pool))
    return Problem(alarm, html_id, links.for_alarm(alarm), buttons[:MAX_BUTTONS], waiting, snooze)


def _line_of(alarm: Alarm) -> str:
    """Return whom the page of waiters shows for ``alarm``: a pool, or the waiters for a lock."""
    _about, colon, name = alarm.pool.partition(": ")
    return name if colon else alarm.pool


def _grouped(problems: Iterable[Problem]) -> list[Group]:
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(_title(problem.alarm), []).append(problem)
    return [Group(title, group) for title, group in groups.items()]


def _title(alarm: Alarm) -> str:
    if system := system_of(alarm):
        return str(capfirst(system.plural))
    if alarm.pool:
        return str(capfirst(apps.get_model(alarm.pool)._meta.verbose_name_plural))
    return str(capfirst(Job._meta.verbose_name_plural))


def _count(groups: Sequence[Group]) -> int:
    return sum(len(group.problems) for group in groups)

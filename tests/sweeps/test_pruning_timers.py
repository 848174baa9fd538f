"""Finished timers are removed after the retention time of their topic."""

import datetime

from django.utils import timezone

from resourcepool.models import Timer, Topic
from resourcepool.sweeps.pruning import prune_finished
from resourcepool.taskqueue import timers

STATES = [state.value for state in Timer.State]


def test_removes_old_finished_timers_but_not_dead_letters_or_unfinished_ones() -> None:
    for topic, kept in (("week", 7 * 86_400), ("hour", 3_600)):
        for state in STATES:
            timers.schedule(state, topic=topic, after=60)
        Topic.objects.filter(pk=topic).update(done_kept=kept)
    a_day_ago = timezone.now() - datetime.timedelta(days=1)
    for state in STATES:
        at = None if state in ("pending", "running") else a_day_ago
        Timer.objects.filter(name=state).update(state=state, finished_at=at)
    assert prune_finished() == 3
    assert Timer.objects.filter(topic_id="week").count() == len(STATES)
    left = set(Timer.objects.filter(topic_id="hour").values_list("name", flat=True))
    assert left == {"pending", "running", "dead"}

"""Who is measured where."""

import pytest

from benchmarks.heats import CONTESTANTS, Choice, heats
from benchmarks.plan import CONTENDED, EXHAUSTED, FEW, FULL, QUICK, Plan, Point

EVERYTHING = ("mysql", "postgres", "sqlite", "redis")


def measured(plan: Plan, choice: Choice, servers: tuple[str, ...] = EVERYTHING) -> list[tuple[str, str, str]]:
    return [(database, str(point), one.name) for database, point, one in heats(plan, choice, servers)]


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_everybody_takes_part(plan: Plan) -> None:
    assert {name for _, _, name in measured(plan, Choice())} == {one.name for one in CONTESTANTS}


def test_a_brief_plan_measures_each_once_on_a_database() -> None:
    names = [(database, name) for database, _, name in measured(QUICK, Choice())]
    assert len(names) == len(set(names))


def test_the_raw_limit_needs_a_row_for_each_and_the_sketch_needs_waiters() -> None:
    found = measured(FULL, Choice())
    assert ("mysql", str(EXHAUSTED), "raw limit") not in found
    assert {point for _, point, name in found if "sketch" in name} == {
        str(point) for point in FULL.points["mysql"] if point.is_contended
    }


def test_points_are_chosen_by_processes_or_name_and_contestants_by_parts_of_names() -> None:
    found = measured(FULL, Choice(["128", "32 on 16"], ["without", "sketch"]), ("mysql",))
    assert {point for _, point, _ in found} == {str(EXHAUSTED), "32 on 16 held 50 ms"}
    assert {name for _, _, name in found} == {
        "hand-over sketch",
        "claim-first sketch",
        "resourcepool, spread without history",
    }


def test_a_point_is_named_without_a_comma() -> None:
    found = measured(FULL, Choice(["32 on 100000"], []), ("mysql",))
    assert found == [("mysql", "32 on 100,000", "resourcepool, spread")]


def test_without_redis_nobody_needs_it() -> None:
    assert not any("Redis" in name for _, _, name in measured(FULL, Choice(), ("mysql",)))


@pytest.mark.parametrize("database", ["mysql", "postgres"])
@pytest.mark.parametrize("point", CONTENDED, ids=str)
def test_the_sketch_is_measured_beside_ours_wherever_there_are_waiters(database: str, point: Point) -> None:
    names = {name for one, at, name in measured(FULL, Choice()) if (one, at) == (database, str(point))}
    assert names >= {"claim-first sketch", "resourcepool, spread"}


def test_where_nobody_waits_half_of_the_time_is_enough() -> None:
    plan = FULL.having(rounds=1, warm_up=0.0, seconds=4.0)
    assert plan.lengths(EXHAUSTED) == {"warm_up": 0.0, "seconds": 4.0}
    assert plan.lengths(FEW[0]) == {"warm_up": 0.0, "seconds": 2.0}

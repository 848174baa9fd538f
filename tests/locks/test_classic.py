"""The classic programs run to the end with the right counts."""

from pathlib import Path

import pytest

from tests.locks import classic_programs as programs
from tests.spawned import Spawner

ROUNDS = 15


@pytest.mark.parametrize("way", ["in order", "with timeouts"])
def test_five_philosophers_all_eat(spawn: Spawner, tmp_path: Path, way: str) -> None:
    meals = programs.philosophers(spawn, tmp_path, ROUNDS, way)
    assert meals == programs.PHILOSOPHERS * ROUNDS


def test_readers_see_what_one_writer_wrote_and_no_writer_is_lost(spawn: Spawner, tmp_path: Path) -> None:
    assert programs.readers_and_writers(spawn, tmp_path, ROUNDS) == programs.WRITERS * ROUNDS


def test_a_bounded_buffer_gives_every_item_to_one_consumer(spawn: Spawner, tmp_path: Path) -> None:
    assert programs.bounded_buffer(spawn, tmp_path, ROUNDS) == programs.PRODUCERS * ROUNDS

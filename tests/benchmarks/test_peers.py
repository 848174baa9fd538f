"""The other task queues and elections: who can be had is measured, who cannot is told."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import beside, measuring, workers as peer_workers
from benchmarks.peers.contestants import ELECTION, LOCK_PEERS, PEERS, QUEUE, WORKER_PEERS, Peer
from benchmarks.peers.environment import Environment, PeerMissing
from benchmarks.peers.measuring import PeerFailed
from benchmarks.peers.table import table
from benchmarks.peers.zookeeper import ZooKeeper
from tests.servers import ServerMissing

FIGURES = {"version": "1", "done 1": 1234.5, "done 8": 8.0, "submit": 9.0, "submit_many": 10.0, "start": [0.5]}


def peer(**changes: Any) -> Peer:
    usual: dict[str, Any] = {"name": "one", "kind": QUEUE, "script": "with_one.py", "place": "redis"}
    return Peer(**usual | {"server": "R", "packages": ("one",), "modules": ("one",), "note": "n"} | changes)


def test_what_this_python_has_is_not_installed_again(tmp_path: Path) -> None:
    python = Environment(tmp_path / "venv").python(peer(modules=("django", "json")))
    assert Path(python).exists()
    assert not (tmp_path / "venv").exists()


def test_a_package_that_cannot_be_installed_is_told_in_one_sentence(tmp_path: Path) -> None:
    missing = peer(packages=(f"{tmp_path}/nothing",), modules=("no_such_module",))
    with pytest.raises(PeerMissing, match=r"nothing could not be installed \(.+\)$") as told:
        Environment(tmp_path / "venv").python(missing)
    assert "\n" not in str(told.value)


def test_no_zookeeper_is_a_server_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_ZOOKEEPER", str(tmp_path))
    with pytest.raises(ServerMissing):
        ZooKeeper()


@pytest.mark.parametrize(
    ("raised", "is_well", "said"),
    [
        (PeerMissing("no Java"), True, "b is not measured: no Java.\n"),
        (PeerFailed("b ended"), False, "b ended\n"),
    ],
)
def test_the_others_are_measured_when_one_is_not(
    raised: Exception,
    is_well: bool,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measured(one: Peer, *_: object) -> dict[str, Any]:
        if one.name == "b":
            raise raised
        return FIGURES

    monkeypatch.setattr(beside, "PEERS", [peer(name=name) for name in "abc"])
    monkeypatch.setattr(beside, "measured", measured)
    assert beside.beside({}, "MariaDB", 1) is is_well
    printed = capsys.readouterr().out
    assert said in printed
    assert "| a 1 | R |" in printed
    assert "| c 1 | R |" in printed


def test_ours_stands_above_the_others_with_what_was_measured() -> None:
    rows = table(QUEUE, {"done 1": 300.0}, "MariaDB", [(peer(), FIGURES)]).splitlines()
    assert rows[2].startswith("| resourcepool | MariaDB | 300 |  |  |  |  | ")
    assert rows[3] == "| one 1 | R | 1,234 | 8 | 9 | 10 | 500 / 500 ms | n |"


def test_an_election_has_median_and_longest() -> None:
    theirs = {"version": "1", "kill -9": [2.0, 2.5, 1.0], "clean stop": [0.0042]}
    assert "| 2,000 (2,500) ms | 4.2 (4.2) ms |" in table(ELECTION, {}, "", [(peer(kind=ELECTION), theirs)])


def test_every_peer_has_a_script() -> None:
    scripts = {one.script for one in (*PEERS, *LOCK_PEERS)} | {"with_our_lock.py"}
    assert scripts == {path.name for path in measuring.SCRIPTS.glob("with_*.py")}
    scripts = {path.name for path in measuring.SCRIPTS.glob("workers_*.py")}
    assert {one.script for one in WORKER_PEERS} | {"workers_ours.py"} == scripts


@pytest.mark.alone
@pytest.mark.only("mariadb")
@pytest.mark.parametrize("name", ["Celery", "advisory lock by psycopg"])
def test_a_quick_measurement_of_a_peer_has_every_figure(name: str, tmp_path: Path) -> None:
    (one,) = [one for one in PEERS if one.name == name]
    try:
        times = 0.1 if one.kind == QUEUE else 1
        figures = measuring.measured(one, Environment(tmp_path / "venv"), times)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    wanted = (
        {"done 1", "done 8", "start", "submit", "submit_many"}
        if one.kind == QUEUE
        else {"kill -9", "clean stop"}
    )
    assert figures.keys() == {"version"} | wanted
    assert all(figures.values())


def test_workers_are_measured_when_one_peer_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(one: Peer, *_: Any) -> dict[str, Any]:
        if one.name == "Celery":
            raise PeerMissing("there is none")
        lags = {"rate": 0, "lags": []} if one.name == "procrastinate" else {"rate": 100, "lags": [0.1, 0.2]}
        return {"version": "1", "kept": 7, "drained": 1_234.5, **lags}

    ours = {"kept": 200, "drained": 5_000.0, "rate": 1_000, "lags": [0.02]}
    monkeypatch.setattr(peer_workers, "measured", measured)
    monkeypatch.setattr(peer_workers, "our_figures", lambda *_, **__: ours)
    assert peer_workers.workers()
    told = capsys.readouterr().out
    assert "Celery is not measured: there is none.\n" in told
    assert "| resourcepool by polling | MariaDB | 5,000 | 1,000 | 20 / 20 ms | 200 |" in told
    assert "| huey on Redis 1 | Redis | 1,234 | 100 | 200 / 200 ms | 7 |" in told
    assert "| procrastinate 1 | PostgreSQL | 1,234 | fewer than 100 |  | 7 |" in told

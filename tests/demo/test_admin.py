"""The admin that is served after the run of the demo."""

from typing import Any

import pytest
from rich.console import Console

from examples.demo import admin


class Interrupted:
    """Records commands instead of starting them; the user presses Ctrl-C at once."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def start(self, _name: str, _module: str, *command: str) -> None:
        self.commands.append(" ".join(command))

    def check(self) -> None:
        raise KeyboardInterrupt


@pytest.mark.django_db
def test_a_sweep_runs_beside_the_admin_so_that_its_dashboard_has_figures(monkeypatch: Any) -> None:
    monkeypatch.setattr(admin, "_wait_for", lambda url, processes: None)
    processes, console = Interrupted(), Console(record=True)
    admin.serve_admin(console, processes)
    assert [command.split()[0] for command in processes.commands] == ["runserver", "resourcepool_sweep"]
    assert "/admin/resourcepool/dashboard/" in console.export_text()

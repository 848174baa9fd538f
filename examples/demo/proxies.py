"""Eight forward proxies: proxy.py from PyPI, one process and one loopback address each, with a password.

A proxy listens on 127.0.0.11, 127.0.0.12, ... and also sends from there, so the target site sees eight visitors.
"""

import csv
import secrets
import socket
from dataclasses import astuple, dataclass
from pathlib import Path

from proxy.http.proxy import HttpProxyBasePlugin

from .processes import DemoError, Processes

COUNTRIES = ("US", "DE", "FR", "US", "GB", "NL", "US", "DE")


@dataclass(frozen=True)
class Row:
    """A line of proxies.csv, as `manage.py resourcepool_import` reads it."""

    scheme: str
    host: str
    port: int
    username: str
    password: str
    country: str
    tags: str
    weight: int
    notes: str


class OwnAddress(HttpProxyBasePlugin):
    """Sends from the address it listens on, and goes to this machine whatever the name of the target."""

    def resolve_dns(self, host: str, port: int) -> tuple[str, tuple[str, int]]:
        # A name, because proxy.py ignores the source address when it is given the target as a number.
        return "localhost", (str(self.flags.hostname), 0)


def start_proxies(processes: Processes) -> list[Row]:
    """Start them side by side, and return once all of them listen."""
    rows = []
    passwords = [secrets.token_urlsafe(9) for _ in COUNTRIES]
    for number, password in enumerate(passwords, 1):
        _start(processes, number, password)
    for number, password in enumerate(passwords, 1):
        port = processes.wait_for_port(processes.folder / f"proxy-{number}.port")
        country, tags = COUNTRIES[number - 1], "datacenter" if number % 2 else "residential"
        rows.append(
            Row("http", _host(number), port, "demo", password, country, tags, 1, f"Demo proxy {number}")
        )
    return rows


def write_csv(rows: list[Row], file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(Row.__annotations__)
        writer.writerows(astuple(row) for row in rows)


def _host(number: int) -> str:
    return f"127.0.0.{10 + number}"


def _start(processes: Processes, number: int, password: str) -> None:
    host, files = _host(number), processes.folder / f"proxy-{number}"
    _require_address(host)
    processes.start(
        files.name,
        "proxy",
        *("--hostname", host, "--port", "0", "--port-file", f"{files}.port"),
        *("--num-acceptors", "1", "--num-workers", "1", "--log-level", "WARNING"),
        *("--basic-auth", f"demo:{password}", "--plugins", "examples.demo.proxies.OwnAddress"),
        *("--data-dir", f"{files}.data", "--cache-dir", f"{files}.cache"),
    )


def _require_address(host: str) -> None:
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise DemoError(
                f"the demo's proxies need the loopback addresses 127.0.0.11 to 127.0.0.18, and {host} cannot be "
                f"used ({error.strerror}); on macOS add each of them with: sudo ifconfig lo0 alias {host}"
            ) from error

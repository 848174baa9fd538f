"""Sends an operation as an operator does, and reads what came of it."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from resourcepool.history.recorder import recorder
from resourcepool.management.base import actor
from resourcepool.models import Event, QueueGroup
from tests.management.command_runner import run
from tests.operations.scene import everything
from tests.rest.conftest import Caller

EXPECTED = Path(__file__).with_name("expected.txt")
INDENT = " " * 4
VARIABLE = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.+Z]+"), "(a time)"),
    (re.compile(r"\b[\d.,]+ (s|min|h)\b"), "(a duration)"),
    (re.compile(r'"(expires_in|held_for|since|waited)": [\d.]+'), r'"\1": (a number)'),
)


def expected() -> dict[str, list[str]]:
    cases = re.findall(r"^(\S.*)\n((?: .*\n)*)", EXPECTED.read_text(), re.MULTILINE)
    return {case: [line.removeprefix(INDENT) for line in lines.splitlines()] for case, lines in cases}


def record(case: str, lines: list[str]) -> None:
    cases = {**expected(), case: lines}
    EXPECTED.write_text(
        "".join(f"{one}\n" + "".join(f"{INDENT}{line}\n" for line in cases[one]) for one in cases)
    )


@pytest.fixture
def users(transactional_db: None) -> Iterator[None]:
    """Leave no user to the next test."""
    yield
    User.objects.all().delete()


def outcome(case: str) -> list[str]:
    """Do it to ``everything``; return the messages, Django's log and the new events."""
    everything()
    surface = case.partition(" ")[0]
    said = {"admin": _by_admin, "page": _by_admin, "manage": _by_command, "rest": _by_rest}[surface](case)
    return [_without_variable_parts(line) for line in [*said, *traces()]]


def traces() -> list[str]:
    """Return what operations have left in Django's log, in the history and in the queue groups."""
    return [*_log(), *_events(), *_planners()]


def post(client: Client, case: str) -> Any:
    """Send what a case with ``admin`` or ``page`` says."""
    words, _, answers = case.partition(" | ")
    surface, model, operation, *keys = words.split()
    name = f"admin:resourcepool_{model}"
    form = {"confirmed": "yes", **json.loads(answers or "{}")}
    if surface == "admin":
        address = reverse(f"{name}_changelist")
        form |= {"action": operation, "_selected_action": keys, "select_across": "0"}
    else:
        address = reverse(f"{name}_operate", args=[*keys, operation])
    return client.post(address, form, follow=True)


def _by_admin(case: str) -> list[str]:
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    context = post(client, case).context
    form = context.get("form")
    errors = [f"error {name}: {text}" for name, texts in form.errors.items() for text in texts] if form else []
    return [f"{message.level_tag}: {message}" for message in context["messages"]] + errors


def _by_command(case: str) -> list[str]:
    _, *words = shlex.split(case)
    ran = run(*words)
    lines = [f"out: {line.rstrip()}" for line in ran.out.splitlines()]
    errors = [f"err: {line.rstrip()}" for line in ran.err.splitlines()]
    return [*lines, *errors, *([f"exit {ran.code}"] if ran.code else [])]


def _by_rest(case: str) -> list[str]:
    _, pool, operation, body = case.split(" ", 3)
    caller = Caller(User.objects.create_superuser("root"))
    answer = caller.post(f"pools/{pool}/operations/{operation}", **json.loads(body))
    return [f"{answer.status_code} {json.dumps(answer.json())}"]


def _log() -> list[str]:
    entries = LogEntry.objects.order_by("object_id").values_list("object_repr", "change_message")
    return [f"log: {row}: {text}" for row, text in entries]


def _events() -> list[str]:
    recorder.flush()
    events = Event.objects.exclude(what="leaked").order_by("what", "pool", "row", "fence", "pk")
    return [f"event: {one.what} {one.pool} {one.row} by {one.actor}: {one.reason}" for one in events]


def _planners() -> list[str]:
    groups = QueueGroup.objects.exclude(assigned_by__in=["", "test"])
    return [f"assigned: {one.name} by {one.assigned_by}" for one in groups]


def _without_variable_parts(line: str) -> str:
    line = line.replace(actor(), "the shell")
    for pattern, text in VARIABLE:
        line = pattern.sub(text, line)
    return line

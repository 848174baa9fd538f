"""``manage.py resourcepool NOUN VERB``."""

import shutil
import subprocess

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from resourcepool.management.commands.resourcepool import completion, nouns, overview, resolve
from resourcepool.models import Proxy, Stream
from resourcepool.operations import OPERATIONS
from tests.app.rows import columns, hold, new

pytestmark = pytest.mark.django_db


def run(*words: str) -> None:
    call_command("resourcepool", *words)


def test_a_noun_and_a_verb_run_the_command_of_that_name(capsys: pytest.CaptureFixture[str]) -> None:
    Stream.objects.create(name="oracle")
    run("streams", "show")
    assert "oracle" in capsys.readouterr().out
    run("streams", "pause", "oracle")
    assert Stream.objects.get().is_paused


def test_operations_on_resources_are_verbs() -> None:
    proxy = new(Proxy)
    hold(proxy)
    run("resources", "revoke", "proxy", str(proxy.pk), "--reason", "stuck", "--yes")
    assert columns(proxy)["holder"] == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["status", "--watch"], ["resourcepool_status", "--watch"]),
        (["rotate-secrets"], ["resourcepool_rotate_secrets"]),
        (["resources", "import", "f.csv", "--sync"], ["resourcepool_import", "f.csv", "--sync"]),
        (["resources", "drain", "proxy", "7"], ["resourcepool_operate", "drain", "proxy", "7"]),
    ],
)
def test_the_rest_of_the_line_is_the_command_s(words: list[str], expected: list[str]) -> None:
    assert resolve(words) == expected


@pytest.mark.parametrize("words", [["nonsense"], ["resources"], ["resources", "nonsense"]])
def test_an_unknown_word_is_answered_with_the_known_ones(words: list[str]) -> None:
    with pytest.raises(CommandError, match=r"quarantine|streams") as refused:
        resolve(words)
    assert refused.value.returncode == 2


def test_the_overview_names_every_command_and_operation() -> None:
    shown = overview()
    assert {"streams", "locks", "queues", "doctor", "resources"} <= set(nouns())
    for name in (*nouns(), *OPERATIONS, "discard"):
        assert name in shown


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["./manage.py", "resourcepool", "str"], ["streams"]),
        (["python", "manage.py", "resourcepool", "streams", "pau"], ["pause"]),
        (["./manage.py", "resourcepool", "resources", "quar"], ["quarantine"]),
    ],
)
def test_bash_completes_nouns_and_verbs(line: list[str], expected: list[str]) -> None:
    words = " ".join(f"'{word}'" for word in line)
    script = f"{completion()}\nCOMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _resourcepool; echo ${{COMPREPLY[@]}}"
    answer = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.split() == expected

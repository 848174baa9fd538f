"""Each system with several pages and a command in Chinese, with no English text left."""

import html
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.admin.conftest import sign_in
from tests.locale.reading import content, helps_without_chinese, in_english, panel
from tests.locale.scenes import SCENES, Scene
from tests.locale.test_commands import CHINESE, chinese
from tests.locale.test_pages import CHINESE as ASKED, said
from tests.management.command_runner import run

__all__ = ["chinese"]
ADMIN = "/admin/resourcepool/"


@pytest.fixture
def client(committed: None) -> Client:
    return sign_in("superuser")


@pytest.fixture
def scene(committed: None, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """The system of this name, with its rows."""
    made = SCENES[request.param]
    made.make()
    yield made
    for model in made.models:
        model._default_manager.all().delete()


def cases(attribute: str) -> Any:
    """Return the mark for each of these of each system."""
    found = [(name, one) for name, scene in SCENES.items() for one in getattr(scene, attribute)]
    return pytest.mark.parametrize(("scene", attribute[:-1]), found, indirect=["scene"])


each = pytest.mark.parametrize("scene", SCENES, indirect=True)


@cases("pages")
def test_a_page_is_in_chinese(client: Client, scene: Scene, page: str) -> None:
    address = ADMIN + page.format(**scene.keys())
    shown = content(said(client, address, **ASKED))
    assert CHINESE.search(shown)
    assert not in_english(shown) - scene.names
    assert not CHINESE.search(said(client, address))


@each
def test_the_dashboard_is_in_chinese(client: Client, scene: Scene) -> None:
    marks, sentence = scene.panel
    shown = "".join(panel(client, mark) for mark in marks.split())
    assert sentence in shown
    assert not in_english(shown) - scene.names


@cases("outcomes")
def test_what_came_of_it_is_said_in_chinese(
    client: Client, scene: Scene, outcome: tuple[str, Any, str]
) -> None:
    page, entered, expected = outcome
    address = ADMIN + page.format(**scene.keys())
    answer = client.post(address, {"confirmed": "yes", **entered}, follow=True, **ASKED)
    assert expected in html.unescape(answer.content.decode())


@cases("words")
def test_the_command_speaks_chinese(scene: Scene, chinese: None, word: str) -> None:
    ran = run(scene.command, *word.split())
    assert CHINESE.search(ran.all)
    assert not in_english(ran.all) - scene.names - scene.typed


@each
def test_the_help_of_each_of_its_words_is_in_chinese(scene: Scene, chinese: None) -> None:
    assert helps_without_chinese(f"resourcepool_{scene.command}") == []


@each
def test_programs_are_answered_in_english(scene: Scene, chinese: None) -> None:
    plan = "plan orders --without late --with C:2"
    for words in ("show", *(("show orders", plan, "drain orders B") if scene.command == "queues" else ())):
        ran = run(scene.command, *words.split(), "--json")
        assert ran.code == 0
        assert not CHINESE.search(ran.all)

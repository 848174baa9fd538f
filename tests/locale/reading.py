"""What pages and helps say to who reads Chinese, and to who reads English."""

import argparse
from collections.abc import Callable

from django.test import Client

from tests.locale.test_commands import CHINESE, parser_of
from tests.locale.test_pages import CHINESE as ASKED
from tests.locale.test_pages import said
from tests.locale.test_queues import content


def read_in_both(client: Client, url: str, english: Callable[[str], set[str]]) -> None:
    """See that a page is in Chinese for who asks for that, without a word of English, and otherwise in English."""
    page = content(said(client, url, **ASKED))
    assert CHINESE.search(page)
    assert not english(page)
    assert not CHINESE.search(said(client, url))


def panel(client: Client, mark: str) -> str:
    """Return this panel of the dashboard, in Chinese."""
    page = said(client, "/admin/resourcepool/dashboard/", **ASKED)
    found = page[page.index(f'aria-labelledby="{mark}"') :]
    return found[found.index(">") : found.index("</section>")]


def helps_without_chinese(command: str) -> list[tuple[str, str]]:
    """Return (word, help) for each word of a command, and each of its options, that is not in Chinese."""
    actions = parser_of(command)._actions
    subs = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    helps = [(choice.dest, choice.help or "") for choice in subs._choices_actions]
    for name, parser in subs.choices.items():
        helps += [(name, each.help or "") for each in parser._actions if each.dest != "help"]
    return [one for one in helps if not CHINESE.search(one[1])]

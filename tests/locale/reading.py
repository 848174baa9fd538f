"""Reads pages and help texts in Chinese and in English."""

import argparse
import html
import re

from django.test import Client

from tests.locale.test_commands import CHINESE, parser_of
from tests.locale.test_pages import CHINESE as ASKED, said

# What is English on every page: rows' names, and words that Chinese texts have, too.
USUAL = {
    "ttl",
    "orders",
    "idle",
    "web",
    "superuser",
    "JSON",
    "UTC",
    "sticky",
    "round",
    "robin",
    "fencing",
    "Fencing",
}


def in_english(text: str) -> set[str]:
    """Return the words of a text that are neither Chinese nor usual, without commands and options."""
    bare = re.sub(
        r"<code>.*?</code>|`[^`]*`|\[\w+\]|<[^>]*>|\{[^}]*\}|q\d+|--[a-z-]+|[a-z_]+=",
        " ",
        text,
        flags=re.DOTALL,
    )
    return set(re.findall(r"[A-Za-z]{2,}", html.unescape(bare))) - USUAL


def content(page: str) -> str:
    """Return our part of an admin page, with its tooltips."""
    inner = page[page.index('<div id="content"') :]
    return inner + " ".join(re.findall(r' (?:title|aria-label)="([^"]*)"', inner))


def panel(client: Client, mark: str) -> str:
    """Return this panel of the dashboard, in Chinese."""
    page = said(client, "/admin/resourcepool/dashboard/", **ASKED)
    found = page[page.index(f'aria-labelledby="{mark}"') :]
    return found[found.index(">") : found.index("</section>")]


def helps_without_chinese(command: str) -> list[tuple[str, str]]:
    """Return (name, help) of each subcommand and option whose help is not in Chinese."""
    actions = parser_of(command)._actions
    subs = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    helps = [(choice.dest, choice.help or "") for choice in subs._choices_actions]
    for name, parser in subs.choices.items():
        helps.append((name, parser.description or ""))
        helps += [(name, each.help or "") for each in parser._actions if each.dest != "help"]
    return [one for one in helps if not CHINESE.search(one[1])]

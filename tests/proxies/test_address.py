"""The forms of an address; errors never show its password."""

import pytest
from hypothesis import example, given, strategies as st

from resourcepool.proxies.fields import address
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.resources.import_file import BadField, BadLine, Row

PLAIN = {"host": "h.example", "port": "80", "username": "", "password": ""}
FULL = {"host": "h.example", "port": "80", "username": "joe", "password": "secret"}
HTTP = {"scheme": "http"}

GOOD = [
    ("http://h.example:80", HTTP | PLAIN),
    ("http://h.example:80/", HTTP | PLAIN),
    ("SOCKS5://h.example:80", PLAIN | {"scheme": "SOCKS5"}),
    ("http://joe:secret@h.example:80", HTTP | FULL),
    ("http://joe:secret@h.example:80/", HTTP | FULL),
    ("http://joe@h.example:80", HTTP | FULL | {"password": ""}),
    ("http://joe:@h.example:80", HTTP | FULL | {"password": ""}),
    ("http://:secret@h.example:80", HTTP | FULL | {"username": ""}),
    ("http://j%6fe:%73ecret@h.example:80", HTTP | FULL),
    ("http://joe:%40%2F%3A%20@h.example:80", HTTP | FULL | {"password": "@/: "}),
    ("http://joe:100%@h.example:80", HTTP | FULL | {"password": "100%"}),
    ("http://joe:se:cr@et@h.example:80", HTTP | FULL | {"password": "se:cr@et"}),
    ("http://joe:p%C3%A4ss@h.example:80", HTTP | FULL | {"password": "päss"}),
    ("http://joe:secret@[::1]:80", HTTP | FULL | {"host": "[::1]"}),
    ("joe:secret@h.example:80", FULL),
    ("joe:%73ecret@h.example:80", FULL),
    ("h.example:80", PLAIN),
    ("h.example:80/", PLAIN),
    ("[::1]:80", PLAIN | {"host": "[::1]"}),
    ("h.example:80:joe:secret", FULL),
    ("h.example:80:joe:", FULL | {"password": ""}),
    ("h.example:80::secret", FULL | {"username": ""}),
    ("h.example:80:joe:%73ecret", FULL | {"password": "%73ecret"}),
    ("h.example:80:joe:a:b/c?d#e", FULL | {"password": "a:b/c?d#e"}),
    ("h.example:80:joe:p@ss", FULL | {"password": "p@ss"}),
    ("h.example:80:joe:x://y", FULL | {"password": "x://y"}),
    ("[::1]:80:joe:secret", FULL | {"host": "[::1]"}),
    (
        "198.51.100.7:8080:joe.smith:1234",
        FULL | {"host": "198.51.100.7", "port": "8080", "username": "joe.smith", "password": "1234"},
    ),
    ("h.example:80:joe:1234", FULL | {"password": "1234"}),
    ("h.example:80:joe:99999", FULL | {"password": "99999"}),
    ("squid:80:joe:secret", FULL | {"host": "squid"}),
    ("joe:1234@squid:80", FULL | {"host": "squid", "password": "1234"}),
    ("joe.smith:1234@h.example:80", FULL | {"username": "joe.smith", "password": "1234"}),
    (
        "http://joe.smith:1234@10.0.0.1:80",
        HTTP | FULL | {"host": "10.0.0.1", "username": "joe.smith", "password": "1234"},
    ),
    # Invalid values, refused by the field parsers.
    ("h.example", PLAIN | {"port": ""}),
    ("http://", HTTP | PLAIN | {"host": "", "port": ""}),
    ("http://h.example", HTTP | PLAIN | {"port": ""}),
    ("[::1]", PLAIN | {"host": "[::1]", "port": ""}),
]

BAD = [
    ("http://joe:sec/ret@h.example:80", "%2F"),
    ("http://joe:sec?ret@h.example:80", "%3F"),
    ("http://joe:sec#ret@h.example:80", "%23"),
    ("http://joe:secret@h.example:80/path", "unexpected text after the port"),
    ("http://joe:secret@h.example:80?a=b", "unexpected text after the port"),
    ("http://joe:secret%ff@h.example:80", "password: its percent-encoding is not UTF-8"),
    ("http://%ff:secret@h.example:80", "username: its percent-encoding is not UTF-8"),
    ("http://::1:80", "in brackets"),
    ("http://[::1]80", "after the bracket"),
    ("::1:80", "in brackets"),
    ("h.example:80:secret", "host:port:user:password"),
    ("h.example:80:joe:secret@other.example:81", "ambiguous"),
    *(
        (text, "ambiguous: which part is the host?")
        for text in (
            *("alice:31337:198.51.100.7:8080", "alice:31337:proxy.example:8080", "alice:31337:squid:8080"),
            *("alice:31337:[2001:db8::1]:8080", "198.51.100.7:8080:10.0.0.1:1234"),
            *("proxy.example:8080:joe.smith:1234", "198.51.100.7:8080@alice:31337"),
            *("proxy.example:8080@alice:31337", "[2001:db8::1]:8080@alice:31337"),
            *("198.51.100.7:8080@alice.example:31337", "http://198.51.100.7:8080@alice:31337"),
            "socks5://proxy.example:8080@alice:31337/",
        )
    ),
    ("http://alice:31337:198.51.100.7:8080", "more than one colon"),
    ("h.example,80,joe,secret", "a header such as host,port"),
    ("h.example;80;joe;secret", "a header such as host,port"),
    ("h.example\t80\tjoe\tsecret", "a header such as host,port"),
]


@pytest.mark.parametrize(("text", "cells"), GOOD)
def test_an_address_is_taken_apart(text: str, cells: dict[str, str]) -> None:
    assert address(text) == cells


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_what_is_no_address_is_refused_without_showing_it(text: str, reason: str) -> None:
    with pytest.raises(BadField) as refused:
        address(text)
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def said(text: str) -> Row | BadLine:
    return ProxyImporter().row(1, lambda: address(text))


ANYTHING = st.text(st.characters(exclude_characters="\n\r"), max_size=60)
PARTS = st.sampled_from(
    ["http", "://", ":", "@", "/", "?", "#", "[", "]", "::1", "80", "h.example", "%", "%ff", ","]
)
SHAPED = st.lists(st.one_of(PARTS, ANYTHING), max_size=12).map("".join)


@given(st.one_of(ANYTHING, SHAPED))
@example("http://[")
@example("[]:")
@example("]:80")
@example("http://a\u2100b@c:80")  # urlsplit fails on it, and shows it
def test_no_line_brings_the_parser_down(text: str) -> None:
    assert isinstance(said(text), Row | BadLine)


SECRET = "Zq7Zq7"
SHAPES = st.sampled_from(
    [
        *("http://joe:{}@h.example:80", "http://joe:{}@h.example:80000", "http://joe:{}@bad host:80"),
        *("http://joe:{}@h.example", "joe:{}@h.example:80", "joe:{}@h.example", "h.example:80:joe:{}"),
        *("h.example:x:joe:{}", "joe:{}:h.example:80", "joe:{}", "http://joe:{}", "h.example,80,joe,{}"),
    ]
)


@given(SHAPES, ANYTHING, ANYTHING)
def test_no_refusal_shows_any_part_of_a_password(shape: str, before: str, after: str) -> None:
    found = said(shape.format(f"{before}{SECRET}{after}"))
    if isinstance(found, BadLine):
        assert SECRET.lower() not in f"{found} {found!r}".lower()
    else:
        assert SECRET not in repr(found)


@given(username=st.text(max_size=20), password=st.text(max_size=20))
def test_a_quoted_login_comes_back_as_it_was(username: str, password: str) -> None:
    from urllib.parse import quote

    url = f"http://{quote(username, safe='')}:{quote(password, safe='')}@h.example:80"
    assert address(url) == HTTP | PLAIN | {"username": username, "password": password}

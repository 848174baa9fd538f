"""Validation of the fields of an imported proxy."""

import pytest
from hypothesis import given, strategies as st

from resourcepool.models import Proxy
from resourcepool.proxies import fields
from resourcepool.proxies.fields import DETAILS, FIELD_PARSERS, IDENTITY
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.resources.import_file import BadField, BadLine, Row

LABEL_63 = "a" * 63

NINE_TAGS = " ".join(f"{n:049}" for n in range(9))
LONGEST = ".".join([LABEL_63] * 3 + ["a" * 61])

# {field: good values that are stored as they are}, and those that are stored in another way.
STORED = {
    "host": ["my_proxy-1", f"{LABEL_63}.example", LONGEST, "10.0.0.1", "1.2.3.4.example"],
    "username": ["", "joe doe", "jürgen", "u" * 200],
    "password": [" p\u00e4ss:w/ord@ ", "p" * 1_000],
    "country": [""],
    "tags": ["", NINE_TAGS],
    "notes": ["", "two\nlines\tand a tab"],
}
GOOD = [
    *((name, text, text) for name, texts in STORED.items() for text in texts),
    ("scheme", "", "http"),
    ("scheme", "SOCKS5h", "socks5h"),
    ("host", "Proxy.Example", "proxy.example"),
    ("host", "proxy.example.", "proxy.example"),
    ("host", "2001:DB8:0:0::1", "2001:db8::1"),
    ("host", "[::1]", "::1"),
    ("port", "1", 1),
    ("port", "0080", 80),
    ("port", "65535", 65_535),
    ("country", "us", "US"),
    ("tags", "Fast,EU  fast", "eu fast"),
    ("weight", "", 1),
    ("weight", "1000000", 1_000_000),
]
BAD = {
    "scheme": ["ftp", "http "],
    "host": [
        *("", "[]", ".", "two words", "a\x07b", "a..b", "-a", "a-", f"{LABEL_63}a.example", f"{LONGEST}a"),
        *("1.2.3", "1.2.3.256", "01.2.3.4", "12345", "a:b", "1::2::3", "fe80::1%eth0", "a/b", "a,b"),
        *("bücher.example", "\u212a.example"),  # the Kelvin sign, whose lower case is a plain k
    ],
    "port": ["", "0", "65536", "-1", "+80", "8_0", "80.0", "\u0668\u0660", "9" * 5_000],  # 80 in Arabic digits
    "username": ["u" * 201, "joe ", " joe", "a\nb"],
    "password": ["p" * 1_001, "a\r\nb", "\x00", "\ud800"],
    "country": ["USA", "u", "üs"],
    "tags": ["fäst", "a" * 51, f"{NINE_TAGS} {9:049}"],
    "weight": ["0", "1000001", "many"],
    "notes": ["n" * 2_001, "bell\x07"],
}


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_a_good_value_is_returned_as_it_is_stored(name: str, text: str, value: object) -> None:
    assert FIELD_PARSERS[name](text) == value


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_a_bad_value_is_refused_by_the_name_of_its_field(name: str, text: str) -> None:
    with pytest.raises(BadField) as refused:
        FIELD_PARSERS[name](text)
    assert refused.value.field == name
    assert str(refused.value).startswith(f"{name}: ")


@given(
    name=st.sampled_from(sorted(FIELD_PARSERS)),
    text=st.text(st.characters(exclude_categories=[]), max_size=300),
)
def test_no_value_brings_a_check_down_or_is_repeated_in_the_refusal(name: str, text: str) -> None:
    try:
        value = FIELD_PARSERS[name](text)
    except BadField as error:
        refused = error
    else:
        assert FIELD_PARSERS[name](str(value)) == value
        return
    assert str(refused) in {str(usual) for usual in refusals(name)}


def refusals(name: str) -> list[BadField]:
    """All errors of the known bad values of a field."""
    found = []
    for text in BAD[name]:
        with pytest.raises(BadField) as refused:
            FIELD_PARSERS[name](text)
        found.append(refused.value)
    return found


def test_the_limits_are_those_of_the_model() -> None:
    assert list(fields.SCHEMES) == Proxy.Scheme.values
    longest = {name: Proxy._meta.get_field(name).max_length for name in ("host", "username", "tags")}
    # Tags lie in the database with a blank on either side.
    assert longest == {
        "host": fields.MAX_HOST,
        "username": fields.MAX_USERNAME,
        "tags": fields.MAX_TAGS + 2,
    }
    for name, most in (("port", fields.MAX_PORT), ("weight", fields.MAX_WEIGHT)):
        assert {limit.limit_value for limit in Proxy._meta.get_field(name).validators[:2]} == {1, most}


def test_the_identity_is_that_of_the_model() -> None:
    (constraint,) = Proxy._meta.constraints
    assert constraint.fields == IDENTITY
    assert {*IDENTITY, *DETAILS} == set(FIELD_PARSERS)


def row(line: int, cells: dict[str, str]) -> Row | BadLine:
    return ProxyImporter().row(line, lambda: cells)


def test_a_row_never_shows_its_password() -> None:
    good = row(7, {"host": "a.example", "port": "80", "password": "hunter2"})
    assert isinstance(good, Row)
    assert good.values["password"] == "hunter2"
    assert "hunter2" not in repr(good)


def test_a_bad_line_does_not_show_its_values() -> None:
    wrong_order = row(3, {"host": "hunter2", "port": "a.example"})
    assert str(wrong_order) == "line 3: port: not a whole number from 1 to 65535"


LIKE_NO_IP = (
    *("http://x y", "http://10.0.0.1", "http://a.example", "joe:secret@a.example", "a.example:8080"),
    *("cafe:8080", "proxy.1", "fe80::1%eth0"),
)


@pytest.mark.parametrize("text", LIKE_NO_IP)
def test_what_is_unlike_any_ip_address_is_not_said_to_be_a_wrong_one(text: str) -> None:
    with pytest.raises(BadField, match="not a host name or an IP address"):
        FIELD_PARSERS["host"](text)


def test_a_wrong_ipv6_address_is_said_to_be_one() -> None:
    with pytest.raises(BadField, match="not an IPv6 address"):
        FIELD_PARSERS["host"]("1::2::3")

"""Validation of the fields of an imported proxy."""

import pytest
from hypothesis import given, strategies as st

from resourcepool.models import Proxy
from resourcepool.proxies import fields
from resourcepool.proxies.fields import DETAILS, FIELD_PARSERS, IDENTITY
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.resources.import_file import BadField, BadLine, Row

LABEL_63 = "a" * 63

GOOD = [
    ("scheme", "", "http"),
    ("scheme", "SOCKS5h", "socks5h"),
    ("host", "Proxy.Example", "proxy.example"),
    ("host", "proxy.example.", "proxy.example"),
    ("host", "my_proxy-1", "my_proxy-1"),
    ("host", f"{LABEL_63}.example", f"{LABEL_63}.example"),
    ("host", ".".join([LABEL_63] * 3 + ["a" * 61]), ".".join([LABEL_63] * 3 + ["a" * 61])),
    ("host", "10.0.0.1", "10.0.0.1"),
    ("host", "1.2.3.4.example", "1.2.3.4.example"),
    ("host", "2001:DB8:0:0::1", "2001:db8::1"),
    ("host", "[::1]", "::1"),
    ("port", "1", 1),
    ("port", "0080", 80),
    ("port", "65535", 65_535),
    ("username", "", ""),
    ("username", "joe doe", "joe doe"),
    ("username", "jürgen", "jürgen"),
    ("username", "u" * 200, "u" * 200),
    ("password", " p\u00e4ss:w/ord@ ", " p\u00e4ss:w/ord@ "),
    ("password", "p" * 1_000, "p" * 1_000),
    ("country", "", ""),
    ("country", "us", "US"),
    ("tags", "", ""),
    ("tags", "Fast,EU  fast", "eu fast"),
    ("tags", " ".join(f"{n:049}" for n in range(9)), " ".join(f"{n:049}" for n in range(9))),
    ("weight", "", 1),
    ("weight", "1000000", 1_000_000),
    ("notes", "", ""),
    ("notes", "two\nlines\tand a tab", "two\nlines\tand a tab"),
]

BAD = [
    ("scheme", "ftp"),
    ("scheme", "http "),
    ("host", ""),
    ("host", "[]"),
    ("host", "."),
    ("host", "two words"),
    ("host", "a\x07b"),
    ("host", "a..b"),
    ("host", "-a"),
    ("host", "a-"),
    ("host", f"{LABEL_63}a.example"),
    ("host", ".".join([LABEL_63] * 3 + ["a" * 62])),
    ("host", "1.2.3"),
    ("host", "1.2.3.256"),
    ("host", "01.2.3.4"),
    ("host", "12345"),
    ("host", "a:b"),
    ("host", "1::2::3"),
    ("host", "fe80::1%eth0"),
    ("host", "bücher.example"),
    ("host", "\u212a.example"),  # the Kelvin sign, whose lower case is a plain k
    ("host", "a/b"),
    ("host", "a,b"),
    ("port", ""),
    ("port", "0"),
    ("port", "65536"),
    ("port", "-1"),
    ("port", "+80"),
    ("port", "8_0"),
    ("port", "80.0"),
    ("port", "\u0668\u0660"),  # 80 in Arabic digits
    ("port", "9" * 5_000),
    ("username", "u" * 201),
    ("username", "joe "),
    ("username", " joe"),
    ("username", "a\nb"),
    ("password", "p" * 1_001),
    ("password", "a\r\nb"),
    ("password", "\x00"),
    ("password", "\ud800"),
    ("country", "USA"),
    ("country", "u"),
    ("country", "üs"),
    ("tags", "fäst"),
    ("tags", "a" * 51),
    ("tags", " ".join(f"{n:049}" for n in range(10))),
    ("weight", "0"),
    ("weight", "1000001"),
    ("weight", "many"),
    ("notes", "n" * 2_001),
    ("notes", "bell\x07"),
]


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_a_good_value_is_returned_as_it_is_stored(name: str, text: str, value: object) -> None:
    assert FIELD_PARSERS[name](text) == value


@pytest.mark.parametrize(("name", "text"), BAD)
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
    for bad_name, text in BAD:
        if bad_name == name:
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


@pytest.mark.parametrize(
    "text",
    [
        *("http://x y", "http://10.0.0.1", "http://a.example", "joe:secret@a.example", "a.example:8080"),
        *("cafe:8080", "proxy.1", "fe80::1%eth0"),
    ],
)
def test_what_is_unlike_any_ip_address_is_not_said_to_be_a_wrong_one(text: str) -> None:
    with pytest.raises(BadField, match="not a host name or an IP address"):
        FIELD_PARSERS["host"](text)


def test_a_wrong_ipv6_address_is_said_to_be_one() -> None:
    with pytest.raises(BadField, match="not an IPv6 address"):
        FIELD_PARSERS["host"]("1::2::3")

"""Parsing lines: formats, columns, and bad lines with reasons."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from resourcepool.exceptions import ImportRefused
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.resources.import_file import MAX_BAD_LINES, MAX_BAD_LINES_KEPT, ParsedFile
from tests.proxies.import_helpers import ALL


def reading(text: str) -> ParsedFile:
    return ProxyImporter().read(iter(enumerate(text.split("\n"), 1)))


def hosts(text: str) -> list[tuple[int, str]]:
    found = reading(text)
    assert not found.bad
    return [(row.line, row.values["host"]) for row in found.rows.values()]


def bad(text: str) -> list[str]:
    return [str(line) for line in reading(text).bad]


class TestCsv:
    @pytest.mark.parametrize(
        ("text", "key", "details"),
        [
            (
                f"{ALL}SOCKS5,A.example,1080,joe,secret,us,Fast eu,7,mine",
                ("socks5", "a.example", 1080, "joe"),
                {"password": "secret", "country": "US", "tags": "eu fast", "weight": 7, "notes": "mine"},
            ),
            ("port,host\n80,a.example", ("http", "a.example", 80, ""), {}),
            (
                "url,country\nhttps://joe:s%40cret@a.example:80,us",
                ("https", "a.example", 80, "joe"),
                {"password": "s@cret", "country": "US"},
            ),
        ],
        ids=["every column", "no more than needed", "url"],
    )
    def test_has_these_values(self, text: str, key: tuple[Any, ...], details: dict[str, Any]) -> None:
        found = reading(text)
        (row,) = found.rows.values()
        assert (list(found.rows), found.details) == ([key], [*details])
        usual = {"password": "", "country": "", "tags": "", "weight": 1, "notes": ""}
        assert {name: row.values[name] for name in usual} == {**usual, **details}

    def test_a_url_without_a_scheme_is_http(self) -> None:
        assert [row.values["scheme"] for row in reading("url\na.example:80").rows.values()] == ["http"]

    @pytest.mark.parametrize("header", ["host,port", " HOST , Port ", '"host","port"', "Ho st,port"])
    def test_knows_its_header_in_any_case_and_spacing(self, header: str) -> None:
        assert hosts(f"{header}\na.example,80") == [(2, "a.example")]

    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_is_separated_by_what_separates_the_header(self, delimiter: str) -> None:
        cells = ["a.example", "80", "eu,fast" if delimiter != "," else '"eu,fast"']
        found = reading(f"{delimiter.join(['host', 'port', 'tags'])}\n{delimiter.join(cells)}")
        assert [row.values["tags"] for row in found.rows.values()] == ["eu fast"]

    def test_a_quoted_cell_may_have_separators_quotes_and_lines(self) -> None:
        found = reading('host,port,notes\na.example,80,"one, ""two""\nthree"\nb.example,80,')
        assert [row.values["notes"] for row in found.rows.values()] == ['one, "two"\nthree', ""]
        assert [row.line for row in found.rows.values()] == [2, 4]

    def test_blanks_around_cells_do_not_count(self) -> None:
        found = reading('host,port,username,password\n a.example , 80 , "joe", secret ')
        (row,) = found.rows.values()
        assert [row.values[name] for name in ("host", "username", "password")] == ["a.example", "joe", "secret"]

    def test_blank_and_empty_rows_and_comments_are_left_out(self) -> None:
        text = "# mine\n\nhost,port\n\na.example,80\n,\n  \n# b.example,80\n#\n c.example,80\n"
        assert hosts(text) == [(5, "a.example"), (10, "c.example")]

    def test_a_hash_is_no_comment_where_a_value_may_begin_with_one(self) -> None:
        (row,) = reading("password,host,port\n#1,a.example,80").rows.values()
        assert row.values["password"] == "#1"

    @pytest.mark.parametrize("row", ["a.example", "a.example,80,joe,sec,ret"])
    def test_a_row_with_more_or_fewer_cells_than_the_header_is_bad(self, row: str) -> None:
        (line,) = bad(f"host,port,username,password\n{row}")
        assert line.startswith("line 2: columns: ")
        assert "the header has 4" in line
        assert "sec" not in line

    @pytest.mark.parametrize(
        ("header", "reason"),
        [
            ("host,port,ip,hue", "unknown columns: 'hue', 'ip'; allowed: url, scheme, host, port, username"),
            ("host,port,", "unknown columns: ''"),
            ("a.example,80,host,secret", "unknown columns; allowed: url, scheme, host"),
            ("host,port,Host", "repeats a column: host"),
            ("url,host,password", "url and host, password"),
            ("host", "lacks port"),
            ("country", "lacks host and port (or url)"),
        ],
    )
    def test_a_wrong_header_is_refused(self, header: str, reason: str) -> None:
        with pytest.raises(ImportRefused) as refused:
            reading(f"{header}\na,b,c,d")
        assert reason in str(refused.value)

    def test_what_an_export_adds_is_ignored(self) -> None:
        found = reading("id,scheme,host,port,username,fence,state\n7,http,a.example,80,joe,9,free")
        assert list(found.rows) == [("http", "a.example", 80, "joe")]

    @pytest.mark.parametrize(
        "rows", ['a.example,80,"x', 'a.example,80,"x\nb.example,80,x', 'a.example,80,"x"y']
    )
    def test_quotes_that_do_not_match_spoil_the_whole_file(self, rows: str) -> None:
        with pytest.raises(ImportRefused, match="line 3: the quotes of this CSV row do not match"):
            reading(f"host,port,notes\nz.example,80,x\n{rows}")


class TestAddresses:
    def test_are_one_a_line(self) -> None:
        text = (
            "# mine\n\nhttp://joe:secret@a.example:80\n  b.example:80\t\n#c.example:80\nd.example:80:joe:pw\n"
        )
        assert hosts(text) == [(3, "a.example"), (4, "b.example"), (6, "d.example")]

    def test_say_nothing_about_other_fields_than_the_password(self) -> None:
        assert reading("a.example:80").details == ["password"]

    def test_values_without_a_header_are_not_shown(self) -> None:
        (line,) = bad("a.example,80,joe,secret")
        assert "needs a header such as host,port,username,password" in line
        assert "secret" not in line


class TestBadLines:
    def test_say_the_line_the_field_and_the_reason(self) -> None:
        assert bad("host,port,weight\na.example,99999,1\nb.example,80,1\nc.example,80,0\n,80,1") == [
            "line 2: port: not a whole number from 1 to 65535",
            "line 4: weight: not a whole number from 1 to 1000000",
            "line 5: host: missing",
        ]

    def test_leave_the_good_ones_alone(self) -> None:
        assert [row.line for row in reading("a.example:80\nbad host:80\nb.example:80").rows.values()] == [1, 3]

    def test_the_same_proxy_with_other_values_is_one(self) -> None:
        found = reading("a.example:80\nb.example:80\nhttp://:other@a.example:80")
        assert [str(line) for line in found.bad] == [
            "line 3: row: the same scheme, host, port, username as line 1",
        ]
        assert [row.line for row in found.rows.values()] == [1, 2]

    @pytest.mark.parametrize("second", ["a.example:80", "HTTP://A.example.:0080"])
    def test_an_exact_copy_is_none_but_is_counted(self, second: str) -> None:
        found = reading(f"a.example:80\nb.example:80\n{second}\na.example:80")
        assert (found.bad, found.repeated) == ([], 2)
        assert [row.line for row in found.rows.values()] == [1, 2]

    def test_too_many_end_the_reading_with_a_line_that_says_so(self) -> None:
        found = reading("a.example:80\n" + "x\n" * (MAX_BAD_LINES + 5))
        assert (found.is_stopped, found.bad_count, len(found.bad)) == (True, MAX_BAD_LINES, MAX_BAD_LINES_KEPT)
        assert "line 10001: file: stopped reading here: bad lines: 10,000" in str(found.bad[-1])

    def test_another_scheme_port_or_username_is_another_proxy(self) -> None:
        assert (
            len(hosts("a.example:80\nhttps://a.example:80\na.example:81\nJoe@a.example:80\njoe@a.example:80"))
            == 5
        )

    def test_are_kept_up_to_twenty_and_counted(self) -> None:
        found = reading("\n".join(["a.example:0"] * 25))
        assert (len(found.bad), found.bad_count) == (20, 25)


@pytest.mark.parametrize("text", ["", "\n \n", "# nothing\n", "host,port\n", "host,port\n,\n# a.example,80"])
def test_a_file_without_a_proxy_is_refused(text: str) -> None:
    with pytest.raises(ImportRefused, match="empty"):
        reading(text)


LINES = st.lists(
    st.lists(
        st.sampled_from(
            ["host", "port", "url", "notes", "a.example", "80", ",", ";", "\t", '"', "#", ":", "@", " ", "ü"]
        ),
        max_size=8,
    ).map("".join),
    max_size=6,
)


@given(LINES)
def test_no_file_brings_the_reader_down(lines: list[str]) -> None:
    with contextlib.suppress(ImportRefused):
        found = reading("\n".join(lines))
        assert found.rows or found.bad

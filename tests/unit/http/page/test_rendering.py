"""Words that all templates share: times, and text of others."""

import contextlib

import pytest
from hypothesis import given, strategies as st

from gateway.http.page.client_paths import client_id_in, client_path
from gateway.http.page.faults import PageFault
from gateway.http.page.fields import Fields, form_in, read_fields
from gateway.http.page.rendering import LONGEST_SHOWN, ago, environment, iso, utc
from gateway.http.page.shapes import path_to
from gateway.printable import printable

MOMENT_MS = 1_796_040_774_500


def shown(value: object) -> str:
    return environment().from_string('<p title="{{ value }}">{{ value }}</p>').render(value=value)


def test_moment_is_told_in_utc_to_the_second_and_for_machines() -> None:
    assert utc(MOMENT_MS) == "2026-11-30 12:12:54 UTC"
    assert iso(MOMENT_MS) == "2026-11-30T12:12:54Z"


@pytest.mark.parametrize("at_ms", [10**30, -(10**30)])
def test_moment_that_no_calendar_has_is_told_as_a_number(at_ms: int) -> None:
    assert utc(at_ms) == f"at {at_ms} ms"
    assert iso(at_ms) == ""


@pytest.mark.parametrize(
    ("apart_ms", "words"),
    [(0, "0.0 s ago"), (-2_000, "2 s ago"), (-7_300_000, "2 h ago"), (300_000, "in 5 min")],
)
def test_moment_is_told_by_how_far_it_is_away(apart_ms: int, words: str) -> None:
    assert ago(MOMENT_MS + apart_ms, MOMENT_MS) == words


def test_control_characters_are_visible_and_lines_stay() -> None:
    assert (
        shown("a\x1b[1m\x00\nb\r\nc") == '<p title="a\\x1b[1m\\x00\nb\nc">a\\x1b[1m\\x00\nb\nc</p>'
    )


def test_text_is_cut_to_what_anybody_reads() -> None:
    longest = "a" * LONGEST_SHOWN
    assert shown(longest).count(longest) == 2
    cut = shown("\x01" * 1_000_000)
    assert cut.count("\\x01") == 2 * LONGEST_SHOWN
    assert f"\N{HORIZONTAL ELLIPSIS}and {1_000_000 - LONGEST_SHOWN} more characters" in cut


def test_what_comes_back_from_a_page_is_whole_and_no_markup() -> None:
    template = environment().from_string('<a href="{{ url }}">{{ typed | whole }}</a>')
    url = path_to("hostnames", prefix="a" * LONGEST_SHOWN)
    made = template.render(url=url, typed="<\x1b\n" * LONGEST_SHOWN)
    shown_typed = "&lt;\\x1b\n" * LONGEST_SHOWN
    assert made == f'<a href="{url}">{shown_typed}</a>'


@given(st.text(), st.sampled_from(["", "\n", "\n\t"]))
def test_every_character_that_is_not_for_printing_is_as_python_escapes_it(
    text: str, keeps: str
) -> None:
    assert printable(text, keeps) == "".join(
        each if each.isprintable() or each in keeps else each.encode("unicode_escape").decode()
        for each in text
    )


@given(st.text())
def test_no_text_is_ever_markup(text: str) -> None:
    made = shown(text)
    inner = made.removeprefix('<p title="').removesuffix("</p>").replace('">', "", 1)
    assert not {"<", ">", '"'} & set(inner)


def test_name_that_a_template_is_not_given_is_a_fault() -> None:
    with pytest.raises(Exception, match="undefined"):
        environment().from_string("{{ nothing }}").render()


def test_path_to_a_page_is_quoted_in_every_part() -> None:
    assert path_to("clients", "a/../b?c", after="d&e", prefix="") == (
        "/operator/clients/a%2F..%2Fb%3Fc?after=d%26e"
    )
    assert path_to() == "/operator"


def test_fields_are_the_last_of_their_name_or_all() -> None:
    fields = form_in(b"a=1&a=+2+&b=&c=%C3%A9%0D%0Ad")
    assert fields.text("a") == "2"
    assert fields.raw("a") == " 2 "
    assert fields.all("a") == ["1", " 2 "]
    assert fields.raw("c") == "é\r\nd"
    assert (fields.text("none"), fields.text("none", "x"), fields.text("b", "x")) == ("", "x", "")
    assert "b" in fields
    assert "none" not in fields


@given(st.binary(max_size=300))
def test_any_body_is_a_form_or_refused(body: bytes) -> None:
    with contextlib.suppress(PageFault):
        assert isinstance(form_in(body), Fields)


@given(st.text(max_size=300))
def test_any_query_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(PageFault):
        assert isinstance(read_fields(text), Fields)


def test_path_to_what_is_no_text_at_all_is_a_path() -> None:
    assert path_to("hostnames", "\ud83d", client="\ud83d") == "/operator/hostnames/%3F?client=%3F"
    assert client_path("\ud83d") == "/operator/clients/~3F"


def test_path_to_a_client_is_no_longer_than_an_id() -> None:
    path = client_path("\x01" * 1_000_000)
    assert len(path) < 1_000
    assert client_id_in(path.rpartition("/")[2]) is None

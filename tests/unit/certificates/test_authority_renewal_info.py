"""What CAs say of when to renew (RFC 9773): windows of all kinds, and what is none."""

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.authority.reading import read_renewal_info
from gateway.certificates.authority.replies import Reply
from gateway.certificates.orders import AuthorityFault, FaultKind, RenewalInfo
from gateway.moments import LATEST_MS
from tests.unit.certificates.issuing import NOW
from tests.unit.certificates.properties import untimed
from tests.unit.certificates.test_authority_reading import CA, VALUES, body_bytes, fault_kind

WINDOW = {"start": "2026-12-01T00:00:00Z", "end": "2026-12-03T00:00:00Z"}
START_MS, END_MS = 1796083200000, 1796256000000


def renewal(body: object, **headers: str) -> RenewalInfo:
    reply = Reply(
        200, {name.replace("_", "-"): text for name, text in headers.items()}, body_bytes(body)
    )
    return read_renewal_info(reply, NOW)


def test_renewal_info_is_read() -> None:
    body = {"suggestedWindow": WINDOW, "explanationURL": f"{CA}/why", "more": 1}
    assert renewal(body, retry_after="21600") == RenewalInfo(START_MS, END_MS, f"{CA}/why", 21600)
    assert renewal({"suggestedWindow": WINDOW}) == RenewalInfo(START_MS, END_MS)


@pytest.mark.parametrize("url", [None, 5, "", "javascript:alert(1)", "https://a b/", "/why"])
def test_renewal_info_has_no_explanation_that_is_no_url(url: object) -> None:
    assert renewal({"suggestedWindow": WINDOW, "explanationURL": url}).explanation_url is None


@pytest.mark.parametrize(
    ("start", "milliseconds"),
    [
        ("2026-12-01T00:00:00Z", 0),
        ("2026-12-01t00:00:00z", 0),
        ("2026-12-01 00:00:00Z", 0),
        ("2026-12-01T00:00:00-00:00", 0),
        ("2026-12-01T02:00:00+02:00", 0),
        ("2026-11-30T13:00:00-11:00", 0),
        ("2026-12-01T00:00:00.5Z", 500),
        ("2026-12-01T00:00:00.123456789Z", 123),
        ("2026-12-01T00:00:00.9999Z", 999),
    ],
)
def test_renewal_info_understands_every_way_to_write_a_moment(
    start: str, milliseconds: int
) -> None:
    info = renewal({"suggestedWindow": {**WINDOW, "start": start}})
    assert info.window_start_ms == START_MS + milliseconds


def test_renewal_window_beyond_the_times_that_can_be_stored_is_cut_to_them() -> None:
    body = {"suggestedWindow": {"start": "0001-01-01T00:00:00Z", "end": "9999-12-31T23:59:59.9Z"}}
    info = renewal(body)
    assert (info.window_start_ms, info.window_end_ms) == (0, LATEST_MS)


@pytest.mark.parametrize(
    "start",
    [
        None,
        1796083200,
        "",
        "soon",
        "2026-12-01",
        "2026-12-01T00:00:00",
        "2026-12-01T00:00Z",
        "2026-W49-2T00:00:00Z",
        "20261201T000000Z",
        "2026-12-32T00:00:00Z",
        "2026-12-01T24:00:01Z",
        "2026-12-01T00:00:00+24:00",
        "2026-12-01T00:00:00.Z",
        "2026-12-01T00:00:00Z\n",
        "٢026-12-01T00:00:00Z",
        WINDOW["end"],
        "2026-12-04T00:00:00Z",
    ],
)
def test_renewal_info_without_a_window_is_the_fault_of_the_server(start: object) -> None:
    with pytest.raises(AuthorityFault) as caught:
        renewal({"suggestedWindow": {**WINDOW, "start": start}})
    assert caught.value.kind is FaultKind.SERVER_ERROR


@pytest.mark.parametrize(
    "body", [b"", b"[]", {}, {"suggestedWindow": None}, {"suggestedWindow": [WINDOW]}]
)
def test_renewal_info_that_makes_no_sense_is_the_fault_of_the_server(body: object) -> None:
    with pytest.raises(AuthorityFault) as caught:
        renewal(body)
    assert caught.value.kind is FaultKind.SERVER_ERROR


@untimed
@given(st.sampled_from(["start", "end"]), st.text(max_size=40) | VALUES)
def test_renewal_info_with_any_moment_is_read_or_refused(key: str, value: object) -> None:
    body = {"suggestedWindow": {**WINDOW, key: value}}
    assert fault_kind(lambda: renewal(body)) in (None, FaultKind.SERVER_ERROR)

"""What is asked of the list of hostnames, and how a document reads as a line of it."""

from typing import Any

import pytest

from gateway.certificates.states import Issuance, Reason, State
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.http.page.hostname import deeds_of, steps_of
from gateway.http.page.hostname_outside import by_topic
from gateway.http.page.hostnames import asked_for
from gateway.http.page.listed import line_of
from gateway.store.documents import Document, Holder, Unreadable
from gateway.views.stages import stages_of
from tests.unit.http.page.test_needs import certificate as certificate_until

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
HOLDER = Holder(ClientId("c"), AppId("a"))
NAME = Hostname("a.example.test")

RECORD = {"type": "A", "value": "198.51.100.1", "ttl": 300, "published": True}
FAILED = Issuance("i", State.FAILED, 1, 1, NOW_MS + DAY_MS).to_json()
ORDERED = Issuance("i", State.ORDERED, 1, 1, NOW_MS).to_json()


def document(**fields: Any) -> Document:
    return Document(NAME, version="v", holder=HOLDER, **fields)


def certificate(left_ms: int) -> dict[str, Any]:
    return certificate_until(left_ms=left_ms, renew_in_ms=left_ms - 30 * DAY_MS)


def test_nothing_asked_is_everything() -> None:
    asked = asked_for("", "", "")
    assert (asked.prefix, asked.client_id, asked.after, asked.exact) == ("", None, None, None)
    assert asked.url(None) == "/operator/hostnames"


def test_whole_hostname_is_one_with_the_dot_of_the_root_too() -> None:
    assert asked_for("a.example.test", "", "").exact == "a.example.test"
    assert asked_for("A.Example.test.", "", "").exact == "a.example.test"
    assert asked_for("a", "", "").exact is None
    assert asked_for("a.example.", "", "").prefix == "a.example."


def test_url_of_the_next_page_asks_for_the_same() -> None:
    url = asked_for("a.", "c&d", "").url(NAME)
    assert url == "/operator/hostnames?prefix=a.&client=c%26d&after=a.example.test"


@pytest.mark.parametrize(
    ("prefix", "client", "after", "words"),
    [
        ("<b>", "", "", "a-z, 0-9, - and dots only"),
        ("a b", "", "", "a-z, 0-9, - and dots only"),
        ("a" * 254, "", "", "253 characters"),
        ("m\N{LATIN SMALL LETTER U WITH DIAERESIS}ller.example", "", "", "xn--mller-kva.example"),
        ("m\N{LATIN SMALL LETTER U WITH DIAERESIS}", "", "", "xn--"),
        ("", "a b", "", "A client's id must be"),
        ("", "", "a" * 1_025, "begin at the first"),
        ("", "", "m\N{LATIN SMALL LETTER U WITH DIAERESIS}ller.example", "begin at the first"),
    ],
)
def test_what_means_nothing_is_refused_in_a_sentence(
    prefix: str, client: str, after: str, words: str
) -> None:
    with pytest.raises(ValueError, match=r"\.$") as refused:
        asked_for(prefix, client, after)
    assert words in str(refused.value)


def test_line_of_a_document_with_everything() -> None:
    waits = Issuance(
        "i", State.WAITING, 1, 1, 1, resume=State.REQUESTED, reason=Reason.RATE_LIMITED
    )
    line = line_of(
        document(
            record={"type": "A", "value": "198.51.100.1", "ttl": 300, "published": True},
            certificate=certificate(5 * DAY_MS),
            issuance=waits.to_json(),
            debts=({"kind": "order", "url": "u"},),
            claim={"sinceMs": 1, "note": ""},
        ),
        NOW_MS,
    )
    assert line.is_readable
    assert (line.holder, line.is_own) == (HOLDER, False)
    assert (line.record, line.is_published) == ("A 198.51.100.1, TTL 300 s", True)
    assert line.certificate is not None
    assert (line.certificate.left, line.certificate.is_valid) == ("5 days left", True)
    assert line.certificate.bar.words.startswith("94 %")
    assert (line.state, line.why) == ("waiting", "rate-limited")
    assert (line.is_claimed, line.debts) == (True, 1)


def test_line_of_an_expired_certificate_says_since_when() -> None:
    line = line_of(document(certificate=certificate(-2 * DAY_MS)), NOW_MS)
    assert line.certificate is not None
    assert (line.certificate.left, line.certificate.is_valid) == ("expired 2 days ago", False)


def test_line_of_what_is_not_readable_tells_the_holder_where_it_can() -> None:
    assert line_of(document(issuance={"state": "new"}), NOW_MS).holder == HOLDER
    for unreadable in (document(issuance={"state": "new"}), Unreadable(NAME)):
        line = line_of(unreadable, NOW_MS)
        assert not line.is_readable
        assert line.hostname == NAME


def test_hostname_of_the_gateway_itself_is_told_apart() -> None:
    assert line_of(Document(NAME, version="v", holder=THE_GATEWAY), NOW_MS).is_own


@pytest.mark.parametrize(
    ("document", "acts"),
    [
        (Document(NAME), "claim"),
        (Document(NAME, claim={"sinceMs": 1, "note": ""}), "claim unclaim"),
        (Document(NAME, holder=THE_GATEWAY, certificate=certificate(60 * DAY_MS)), "renew claim"),
        (document(certificate=certificate(60 * DAY_MS)), "renew release"),
        (document(certificate=certificate(5 * DAY_MS)), "retry release"),
        (document(certificate=certificate(5 * DAY_MS), issuance=FAILED), "retry release"),
        (document(issuance=ORDERED, record=RECORD), "release withdraw"),
    ],
)
def test_what_can_be_done_is_offered_and_nothing_else(document: Document, acts: str) -> None:
    offered = [deed.url.rpartition("/")[2] for deed in deeds_of(document, NOW_MS)]
    assert offered == acts.split()


def test_stages_tell_how_long_each_took_where_both_times_are_known() -> None:
    issuance = Issuance(
        "i",
        State.PROPAGATED,
        1,
        1,
        1,
        passed_ms={"requested": 1_000, "ordered": 4_000, "propagated": 124_000},
    )
    steps = steps_of(stages_of(issuance))
    assert [(step.stage.state.value, step.status, step.took) for step in steps[:5]] == [
        ("requested", "passed", None),
        ("ordered", "passed", "3 s"),
        ("published", "not needed", None),
        ("propagated", "passed", "2 min"),
        ("validating", "under way", None),
    ]


def test_rows_of_a_topic_are_together_in_their_order() -> None:
    rows = [("a", "1"), ("a", "2"), ("b", "3"), ("a", "4")]
    assert by_topic(rows) == [("a", ("1", "2")), ("b", ("3",)), ("a", ("4",))]

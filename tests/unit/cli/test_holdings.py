"""The command line of `gateway holdings`, and its words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.certificates import machine
from gateway.certificates.moves import Moment
from gateway.certificates.states import Debt, DebtKind, StoredCertificate
from gateway.cli import holding_words as words, main
from gateway.cli.holdings import _lies_in
from gateway.contract import DnsRecord
from gateway.contract.names import AppId, ClientId, Hostname, ZoneName
from gateway.dns.owner import Owner
from gateway.dns.transfer import Challenge
from gateway.dns.zones import Zones
from gateway.holdings.forgetting import Forgotten
from gateway.holdings.handing_over import HandedOver
from gateway.holdings.rebuilding import Finding, Upshot, ZoneReport
from gateway.printable import printable
from gateway.store.documents import Document, Holder, Unreadable
from gateway.views import holdings as held
from tests.unit.dns.building import ZONE

ZONES = Zones([ZONE, replace(ZONE, name=ZoneName("deep.example.test"))])
NAME = Hostname("a.example.test")
RECORD = DnsRecord(type="A", value="192.0.2.1", ttl=300)
OWNER = Owner(ClientId("relay"), AppId("app"), NAME)
HELD = Document(
    NAME,
    version="1",
    holder=Holder(OWNER.client_id, OWNER.app_id),
    record={**RECORD.to_wire(), "published": True, "edition": "e"},
)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["rebuild", "--app-id", "two words"], "--app-id must be 1 to 128"),
        (["rebuild", "--owners", "FILE"], "--owners line 1 must be `clientId appId [hostname]`"),
        (["rebuild", "--names", "FILE"], "--names line 1 must be a hostname"),
        (["hand-over", "*.a.test", "--from", "a:b", "--to", "c:d"], "HOSTNAME must be"),
        (["hand-over", "a.test", "--from", "a", "--to", "c:d"], "--from must be CLIENT:APPID"),
        (["hand-over", "a.test", "--from", "a:b", "--to", ":d"], "--to must be CLIENT:APPID"),
        (["forget", "a.test", "--from", "a:"], "--from must be CLIENT:APPID"),
        (["list", "--zone", "a.test."], "--zone must be written as 'a.test', not 'a.test.'"),
        (["list", "--zone", "A.Test"], "--zone must be written as 'a.test', not 'A.Test'"),
        (["list", "--zone", ""], "--zone must be the name of a zone, not ''"),
        (["rebuild", "--zone", "A.test."], "--zone must be written as 'a.test', not 'A.test.'"),
    ],
)
def test_wrong_command_line_is_told(tmp_path: Path, arguments: list[str], fault: str) -> None:
    file = tmp_path / "file"
    file.write_text("nonsense_\n")
    given = [str(file) if each == "FILE" else each for each in arguments]
    result = CliRunner().invoke(main, ["holdings", *given])
    assert result.exit_code == 2
    assert result.output.startswith(fault)


def test_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\xff\xfe")
    result = CliRunner().invoke(main, ["holdings", "rebuild", "--names", str(file)])
    assert result.exit_code == 2
    assert result.output == f"--names {file} can't be read: UnicodeDecodeError.\n"


@pytest.mark.parametrize(
    ("hostname", "zone", "lies"),
    [
        ("a.example.test", "example.test", True),
        ("example.test", "example.test", True),
        ("a.example.test", "ample.test", False),
        ("a.deep.example.test", "example.test", False),
        ("a.deep.example.test", "deep.example.test", True),
        ("a.gone.example.test", "gone.example.test", True),
        ("a.gone.test", "gone.test", True),
        ("a.gone.test", "example.test", False),
    ],
)
def test_hostname_lies_in_the_deepest_zone(hostname: str, zone: str, lies: bool) -> None:
    assert _lies_in(hostname, zone, ZONES) is lies


def test_line_has_all_that_is_held() -> None:
    issuance = machine.request("i", Moment(1, 0)).to_json()
    certificate = StoredCertificate("i", "pem", "sealed", *(1,) * 5, "s", "i", "https://ca", 1)
    full = replace(
        HELD,
        record={**RECORD.to_wire(), "published": False, "edition": "e"},
        certificate=certificate.to_json(),
        issuance=issuance,
        debts=(Debt(DebtKind.ORDER, url="u").to_json(),),
    )
    assert held.line(full, ZONES) == (
        "a.example.test  relay for app  A 192.0.2.1, TTL 300 s (about to be published)"
        "  certificate  issuance requested  1 to be cleaned up"
    )


def test_line_of_a_claim_in_no_configured_zone_says_so() -> None:
    claimed = Document(Hostname("a.gone.test"), version="1", claim={"sinceMs": 1, "note": ""})
    assert held.line(claimed, ZONES) == "a.gone.test  claimed  in no configured zone"
    assert held.client_of(claimed) is None
    view = words.view(claimed, ZONES)
    assert (view["zone"], view["clientId"], view["record"]) == (None, None, None)
    assert view["claim"] == {"since": 1, "note": ""}


@pytest.mark.parametrize(
    "odd",
    [
        {"issuance": {"issuance_id": "i", "state": "unheard-of"}},
        {"certificate": {"form": 99}},
        {"record": {"type": "ZZ"}},
        {},
    ],
)
def test_document_of_a_newer_release_is_listed_as_one(odd: dict[str, Any]) -> None:
    newer = replace(HELD, **odd, debts=({},))
    assert held.line(newer, ZONES) == (
        "a.example.test  relay for app  not readable by this release  1 to be cleaned up"
    )
    view = words.view(newer, ZONES)
    assert (view["readable"], view["clientId"], view["record"]) == (False, "relay", None)


def test_who_gives_up_what_is_not_the_gateways_is_told() -> None:
    assert words.not_the_gateways(Document(NAME)) == (
        "a.example.test is not held by the gateway itself: nobody holds it."
    )
    text = words.not_the_gateways(HELD)
    assert text.startswith(
        "a.example.test is not held by the gateway itself but by relay for app: "
    )
    assert "`gateway clients remove relay --release-holdings`" in text


def test_document_that_is_not_readable_at_all_is_listed_as_one() -> None:
    broken = Unreadable(Hostname("a.gone.test"))
    assert held.line(broken, ZONES) == (
        "a.gone.test  not readable by this release  in no configured zone"
    )
    view = words.view(broken, ZONES)
    assert (view["readable"], view["zone"], view["clientId"]) == (False, None, None)
    assert view.keys() == words.view(HELD, ZONES).keys()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a  TXT caf\u00e9 …", "a  TXT caf\u00e9 …"),
        ("\x1b[2K\nzone", "\\x1b[2K\\nzone"),
        ("\x9b1A\u202e\udcff\x7f", "\\x9b1A\\u202e\\udcff\\x7f"),
    ],
)
def test_what_would_steer_a_terminal_is_shown_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_names_of_no_zone_are_counted_and_the_first_are_named() -> None:
    strays = [Hostname(f"{number}.typo.test") for number in range(7)]
    assert words.stray_words(strays) == (
        "Of --names, 7 in no configured zone: 0.typo.test, 1.typo.test, 2.typo.test,"
        " 3.typo.test, 4.typo.test, and 2 more."
    )
    assert words.rebuilt_view([], dry_run=False, strays=strays)["settled"] is False


def test_every_outcome_has_words() -> None:
    assert set(words.MEANINGS) == set(Upshot)


def report(**changes: object) -> ZoneReport:
    made = ZoneReport(ZONE.name)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_rebuild_tells_each_name_but_the_known_ones_and_counts_all() -> None:
    findings = [
        Finding("a.test", Upshot.KNOWN, OWNER, RECORD),
        Finding("b.test", Upshot.UNKNOWN_KEY, key_ids=("lost",), markers=2),
        Finding("c.test", Upshot.DISAGREES, OWNER, RECORD, "Redis says no."),
    ]
    made = report(findings=findings, challenges=[Challenge("_acme-challenge.d.test", "v")])
    assert list(words.rebuilt_lines([made])) == [
        "b.test  unknown-key: its marker was made with a key that the keyring lacks: another"
        " gateway's, or one that was lost (lost)  2 markers are there",
        "c.test  relay for app  A 192.0.2.1, TTL 300 s  disagrees: proven, and Redis says something"
        " else; nothing was written. Redis says no.",
        "_acme-challenge.d.test  TXT v  a challenge that nothing in Redis owes: another gateway's,"
        " or left over; nothing proves whose it is",
        "zone example.test (read whole): 1 known, 1 disagrees, 1 unknown-key,"
        " 1 challenge values left over",
    ]
    view = words.rebuilt_view([made], dry_run=True)
    assert (view["dryRun"], view["settled"]) == (True, False)
    assert [each["outcome"] for each in view["zones"][0]["names"]] == [
        "known",
        "unknown-key",
        "disagrees",
    ]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "zone example.test (read whole): nothing of the gateway"),
        (
            {"partial": "Refused.", "looked_at": 3, "read": 3},
            "zone example.test (only 3 known names were looked at: Refused.):"
            " nothing of the gateway",
        ),
        (
            {"partial": "Gone."},
            "zone example.test (not read: Gone.)",
        ),
        (
            {"partial": "Gone.", "findings": [Finding("a.test", Upshot.UNREAD)]},
            "zone example.test (not read: Gone.): 1 unread",
        ),
    ],
)
def test_rebuild_says_how_a_zone_was_read(changes: dict[str, object], line: str) -> None:
    assert list(words.rebuilt_lines([report(**changes)]))[-1] == line


@pytest.mark.parametrize(
    ("outcomes", "read", "is_settled"),
    [
        ([], 1, True),
        ([], 0, False),
        ([Upshot.RESTORED, Upshot.RESTORABLE, Upshot.KNOWN], 3, True),
        ([Upshot.KNOWN, Upshot.UNPROVEN], 2, False),
    ],
)
def test_zone_that_is_not_transferred_is_settled_when_all_that_is_read_is_proven(
    outcomes: list[Upshot], read: int, is_settled: bool
) -> None:
    findings = [Finding("a.test", outcome) for outcome in outcomes]
    made = report(findings=findings, partial="Refused.", read=read)
    assert made.is_settled is is_settled
    assert words.rebuilt_view([made], dry_run=False)["zones"][0]["unreadable"] is (not read)


def test_hand_over_says_what_was_done() -> None:
    done = HandedOver(RECORD, was_done=True, released=True)
    assert words.handed_words(OWNER, done) == (
        "a.example.test A 192.0.2.1, TTL 300 s is held by relay for app now."
        " The zone said so already. The giver's certificate is released."
    )
    assert words.handed_view(OWNER, done)["certificateReleased"] is True


def test_what_was_forgotten_is_told_with_what_stays() -> None:
    debt = Debt(
        DebtKind.CHALLENGE_RECORD, zone="gone.test", name="_acme-challenge.a.test", value="v"
    )
    forgotten = Forgotten(RECORD, (debt,), keeps_certificate=True)
    assert list(words.forgotten_lines(NAME, forgotten)) == [
        "Forgotten: a.example.test A 192.0.2.1. The record and its marker stay in their zone.",
        "Forgotten: _acme-challenge.a.test TXT v in the zone gone.test."
        " The value stays in its zone.",
        "Its certificate stays until it is released, or a.example.test's client is removed.",
    ]
    view = words.forgotten_view(NAME, forgotten)
    assert view["record"] == RECORD.to_wire()
    assert [each["zone"] for each in view["challenges"]] == ["gone.test"]

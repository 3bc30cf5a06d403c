"""What a backup's lines say, and what follows from documents and clients."""

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from gateway.backup.contents import (
    Tally,
    index_entries,
    line_of,
    pieces_in,
    without_lease,
)
from gateway.backup.sealed_file import BackupRefused
from gateway.store import keys
from gateway.store.whole import (
    BYTES_AT_ONCE,
    COMMANDS_AT_ONCE,
    Piece,
    Sort,
    batches,
    hash_piece,
    sort_of,
)

HOSTNAME = "relay.example.test"
NAMES = keys.names_key(keys.bucket_of(HOSTNAME))
NOW_MS = 1_800_000_000_000
TEXTS = st.text(st.characters(codec=None), max_size=20)
HOLDER = {"clientId": "c", "appId": "a"}


def document(due: str | None = None, entered: str | None = None, **fields: Any) -> Piece:
    texts = {name: json.dumps(value) for name, value in fields.items()}
    piece = hash_piece(keys.host_key(HOSTNAME), {"version": "v", **texts})
    return Piece(piece.key, piece.kind, piece.values, due=due, entered=entered)


@given(
    key=TEXTS,
    values=st.lists(TEXTS, min_size=1),
    is_first=st.booleans(),
    expires_ms=st.none() | st.integers(0, 2**53),
    due=st.none() | TEXTS,
    entered=st.none() | TEXTS,
)
def test_piece_comes_back_as_it_was(
    key: str,
    values: list[str],
    is_first: bool,
    expires_ms: int | None,
    due: str | None,
    entered: str | None,
) -> None:
    piece = Piece(key, "set", values, is_first, expires_ms, due, entered)
    saved, read = Tally(), Tally()
    saved.add(piece)
    line = line_of(piece)
    assert line.count(b"\n") == 1
    assert list(pieces_in(iter([line, saved.line()]), read, "FILE")) == [piece]
    assert read == saved


@pytest.mark.parametrize(
    ("key", "sort"),
    [
        (keys.host_key(HOSTNAME), Sort.DOCUMENT),
        (keys.handed_key(HOSTNAME, "i", "c"), Sort.OTHER),
        (keys.due_key(7), Sort.INDEX),
        (keys.names_key(7), Sort.INDEX),
        (keys.client_key("0" * 24), Sort.CLIENT),
        (keys.client_holdings_key("0" * 24), Sort.INDEX),
        (keys.client_calls_key("0" * 24), Sort.OTHER),
        (keys.CLIENTS_KEY, Sort.INDEX),
        (keys.CLAIMS_KEY, Sort.INDEX),
        (keys.KEYRING_KEY, Sort.MARK),
        (keys.SCHEMA_KEY, Sort.MARK),
        (keys.page_session_key("0" * 64), Sort.MARK),
        (keys.page_notice_key("0" * 64, "/operator"), Sort.MARK),
        (keys.page_form_key("0" * 64, "f"), Sort.MARK),
        (keys.account_key("https://ca.test"), Sort.ACCOUNT),
        (keys.ledger_index_key("https://ca.test"), Sort.FIGURE),
        (keys.ledger_key("https://ca.test", "orders", "x"), Sort.FIGURE),
        (keys.AUDIT_KEY, Sort.TRAIL),
        (keys.NOTABLE_KEY, Sort.OTHER),
        (keys.audit_day_key("2027-01-15"), Sort.OTHER),
        (keys.audit_writer_key("w"), Sort.OTHER),
        (keys.client_uses_key("0" * 24), Sort.OTHER),
        ("gw:newer", Sort.OTHER),
    ],
)
def test_every_key_is_told_apart(key: str, sort: Sort) -> None:
    assert sort_of(key) is sort


def test_lines_that_do_not_add_up_are_refused() -> None:
    piece = document()
    end = Tally().line()
    for lines, told in (
        ([line_of(piece), end], "does not hold what its end counts"),
        ([line_of(piece)], "has no end"),
        ([end, line_of(piece)], "goes on behind its end"),
        ([line_of(Piece("gw:x", "list", ["a"]))], "newer release: gw:x is a list"),
    ):
        with pytest.raises(BackupRefused, match=told):
            list(pieces_in(iter(lines), Tally(), "FILE"))


def test_end_of_a_release_that_counts_more_or_less_is_judged_by_what_both_count() -> None:
    piece, tally = document(), Tally()
    tally.add(piece)
    end = json.loads(tally.line())["end"]
    more = {**end, "later": 7}
    fewer = {name: count for name, count in end.items() if name != "record"}
    for named in (more, fewer):
        line = json.dumps({"end": named}).encode() + b"\n"
        assert list(pieces_in(iter([line_of(piece), line]), Tally(), "FILE")) == [piece]
    wrong = json.dumps({"end": {**more, "record": 1}}).encode() + b"\n"
    with pytest.raises(BackupRefused, match="does not hold what its end counts"):
        list(pieces_in(iter([line_of(piece), wrong]), Tally(), "FILE"))


def test_list_that_is_just_another_key_to_the_release_that_saved_it_adds_up() -> None:
    piece, tally = Piece(NAMES, "zset", [HOSTNAME, "0"]), Tally()
    tally.add(piece)
    end = json.loads(tally.line())["end"]
    as_other = {**end, Sort.INDEX.value: 0, Sort.OTHER.value: 1}
    line = json.dumps({"end": as_other}).encode() + b"\n"
    assert list(pieces_in(iter([line_of(piece), line]), Tally(), "FILE")) == [piece]
    wrong = json.dumps({"end": {**as_other, Sort.OTHER.value: 2}}).encode() + b"\n"
    with pytest.raises(BackupRefused, match="does not hold what its end counts"):
        list(pieces_in(iter([line_of(piece), wrong]), Tally(), "FILE"))


@pytest.mark.parametrize(
    "key", ["gw:{h1}:host:\xfc", "gw:{h1}:host:\udcff", "gw:{h999}:host:a.test"]
)
def test_key_like_a_document_that_no_gateway_writes_is_another_key(key: str) -> None:
    assert sort_of(key) is Sort.OTHER


@given(
    sizes=st.lists(st.integers(1, 60_000), max_size=60),
    entries=st.integers(0, 5_000),
)
@settings(max_examples=20)
def test_what_is_sent_at_once_is_bounded_and_all_is_sent_in_order(
    sizes: list[int], entries: int
) -> None:
    hashes = [hash_piece(f"gw:x{number}", {"f": "x" * size}) for number, size in enumerate(sizes)]
    listed = [[f"1-{number}", ["id", str(number)]] for number in range(entries)]
    sent = list(batches([*hashes, Piece(keys.AUDIT_KEY, "stream", listed)]))
    for batch in sent:
        commands = [command for _, each in batch for command in each]
        assert 0 < len(commands) <= COMMANDS_AT_ONCE
        before_last = sum(len(str(word)) for command in commands[:-1] for word in command)
        assert before_last < BYTES_AT_ONCE
    in_order = [command for batch in sent for _, each in batch for command in each]
    assert [command[2] for command in in_order if command[0] == "XADD"] == [
        place for place, _ in listed
    ]
    assert [command[1] for command in in_order if command[0] == "HSET"] == [
        piece.key for piece in hashes
    ]


def test_indices_follow_from_a_document() -> None:
    piece = document("1700.5", "1600", holder=HOLDER, claim={"sinceMs": 1, "note": ""})
    holdings = keys.client_holdings_key(keys.fingerprint("c"))
    assert [(each.key, each.kind, each.values) for each in index_entries(piece)] == [
        (NAMES, "zset", [HOSTNAME, "0"]),
        (keys.due_key(keys.bucket_of(HOSTNAME)), "zset", [HOSTNAME, "1700.5"]),
        (holdings, "zset", [HOSTNAME, "1600"]),
        (keys.CLAIMS_KEY, "set", [HOSTNAME]),
    ]
    assert not any(each.is_first for each in index_entries(piece))


def test_holding_of_the_gateway_itself_is_in_no_clients_index() -> None:
    """Its certificate's holder is no client, and was entered nowhere."""
    piece = document(holder={"clientId": "the gateway", "appId": "a"})
    assert [each.key for each in index_entries(piece)] == [NAMES]


def test_client_is_listed_by_its_id() -> None:
    piece = hash_piece(keys.client_key("0" * 24), {"client": json.dumps({"clientId": "c"})})
    (entry,) = index_entries(piece)
    assert (entry.key, entry.values) == (keys.CLIENTS_KEY, ["c"])


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"clientId": 7}', "null"])
def test_document_that_nobody_can_read_is_kept_and_listed_by_its_name_only(text: str) -> None:
    piece = hash_piece(keys.host_key(HOSTNAME), {"holder": text, "issuance": text, "debts": text})
    Tally().add(piece)
    assert [each.key for each in index_entries(piece)] == [NAMES]


def test_lease_goes_and_what_it_held_back_is_due() -> None:
    leased = document("1900", "1600", holder=HOLDER, lease={"worker": "w"}, fence=4)
    free = without_lease(leased, NOW_MS)
    assert free == document(str(NOW_MS), "1600", holder=HOLDER, fence=4)
    resting = document("1900", holder=HOLDER)
    assert without_lease(resting, NOW_MS) == resting
    assert without_lease(document(lease={"worker": "w"}), NOW_MS).due is None


def test_what_was_in_flight_is_counted_and_named() -> None:
    tally = Tally()
    for number, state in enumerate(["issued", "failed", "waiting", "published"]):
        piece = hash_piece(
            keys.host_key(f"n{number}.example.test"),
            {"issuance": json.dumps({"state": state}), "debts": json.dumps([{}])},
        )
        tally.add(piece)
    assert tally.under_way == ["n2.example.test (waiting)", "n3.example.test (published)"]
    assert tally.counts["issuance"] == 2
    assert tally.counts["debt"] == 4
    assert tally.counts["hostname"] == 4

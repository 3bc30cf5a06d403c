"""What a document remembers of a record, and when the record of a call stands for it."""

from typing import Any

import pytest

from gateway.contract import DnsRecord
from gateway.contract.names import Hostname
from gateway.holdings.remembered import (
    is_published,
    kept_record,
    remembered_record,
    says,
    sought_records,
)
from gateway.store.documents import Document, Unreadable

RECORD = DnsRecord(type="A", value="192.0.2.1", ttl=60)
OTHERS = [
    DnsRecord(type="A", value="192.0.2.2", ttl=60),
    DnsRecord(type="A", value="192.0.2.1", ttl=61),
    DnsRecord(type="AAAA", value="2001:db8::1", ttl=60),
]


def remembering(record: dict[str, Any] | None) -> Document:
    return Document(Hostname("a.example"), record=record)


@pytest.mark.parametrize("published", [True, False])
def test_record_is_read_back_as_it_was_kept(published: bool) -> None:
    document = remembering(kept_record(RECORD, "e", published=published))
    assert remembered_record(document) == RECORD
    assert remembered_record(document, RECORD) is RECORD
    assert is_published(document) is published
    assert says(document, RECORD)


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_another_record_does_not_stand_for_it(other: DnsRecord) -> None:
    document = remembering(kept_record(RECORD, "e", published=True))
    assert remembered_record(document, other) == RECORD
    assert not says(document, other)


def test_nothing_is_remembered_of_nothing() -> None:
    assert remembered_record(remembering(None), RECORD) is None
    assert not is_published(remembering(None))
    assert not says(remembering(None), RECORD)


@pytest.mark.parametrize(
    "changes",
    [{"sinceMs": -1}, {"type": "MX"}, {"type": None}, {"value": "192.0.2.01"}, {"ttl": 1}],
    ids=str,
)
def test_what_no_release_writes_is_unreadable(changes: dict[str, Any]) -> None:
    document = remembering({**kept_record(RECORD, "e", published=True), **changes})
    with pytest.raises(Unreadable):
        remembered_record(document, RECORD)
    sought = {**kept_record(RECORD, "e", published=True), "sought": [changes]}
    with pytest.raises(Unreadable):
        sought_records(remembering(sought))


@pytest.mark.parametrize("missing", ["type", "value", "ttl", "published"])
def test_record_without_one_of_its_parts_is_unreadable(missing: str) -> None:
    kept = kept_record(RECORD, "e", published=True)
    del kept[missing]
    with pytest.raises(Unreadable):
        remembered_record(remembering(kept), RECORD)

"""What a call for a record is answered is what the contract's model would have let pass."""

import pytest

from gateway.contract import DnsRecord, SyncDnsRecordResponse
from gateway.contract.names import Hostname
from gateway.dns.outcome import FoundRecord, Outcome, OutcomeKind
from gateway.holdings.record_answers import PUBLISHED, answer_of

NAME = Hostname("relay.example.com")
RECORD = DnsRecord(type="A", value="198.51.100.85")
FOUND = FoundRecord(NAME, "TXT", '"x"', 60)
ANSWERED = [kind for kind in OutcomeKind if kind not in {OutcomeKind.FREE, OutcomeKind.OURS}]


@pytest.mark.parametrize("kind", ANSWERED, ids=str)
def test_answer_keeps_to_the_contract(kind: OutcomeKind) -> None:
    answer = answer_of(NAME, Outcome(kind, "As it is.", RECORD, (FOUND,), retry_after_seconds=2))
    assert SyncDnsRecordResponse.from_wire(answer.to_wire()) == (answer, [])
    assert answer.hostname == NAME
    assert answer.message == "As it is."
    assert answer.record == (RECORD if kind in PUBLISHED else None)
    assert len(answer.conflicting_records) == (kind is OutcomeKind.CONFLICT)


def test_words_of_other_servers_are_made_fit_to_be_sent() -> None:
    answer = answer_of(NAME, Outcome(OutcomeKind.FAILED, "it says \ud800"))
    assert answer.message == "it says ?"

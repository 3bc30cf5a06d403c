"""A ready certificate that is written without its model reads as the model does, byte for byte."""

import json

from hypothesis import given, strategies as st

from gateway.contract import (
    Certificate,
    CertificateReady,
    HandedOut,
    Hostname,
    ReadyFrame,
    render_response,
)

HOSTNAME = Hostname("relay.example.com")
texts = st.text(st.characters(exclude_categories=("Cs",)))
times = st.integers(0, 253_402_300_799_999)


@given(texts, texts, times, times, times)
def test_it_is_written_as_the_model_is(
    chain_pem: str, private_key_pem: str, valid_from: int, valid_until: int, renew_after: int
) -> None:
    certificate = Certificate(
        hostname=HOSTNAME,
        chain_pem=chain_pem,
        private_key_pem=private_key_pem,
        valid_from=valid_from,
        valid_until=valid_until,
        renew_after=renew_after,
    )
    frame = ReadyFrame.of(
        HOSTNAME,
        chain_pem,
        valid_from=valid_from,
        valid_until=valid_until,
        renew_after=renew_after,
    )
    model, handed_out = CertificateReady(certificate=certificate), HandedOut(frame, private_key_pem)
    assert handed_out.written() == model.written()
    assert handed_out.to_wire() == model.to_wire()
    library = json.dumps(model.to_wire(), ensure_ascii=False, separators=(",", ":"))
    assert handed_out.written().body == library.encode()


def test_it_is_an_answer_like_any_other() -> None:
    frame = ReadyFrame.of(HOSTNAME, "chain\n", valid_from=1, valid_until=3, renew_after=2)
    handed_out = HandedOut(frame, "key\n")
    written, wire = handed_out.written(), handed_out.to_wire()
    assert written.status == "ready"
    assert render_response("m", "c1", written.body, None) == render_response("m", "c1", wire, None)


def test_it_does_not_show_the_key() -> None:
    frame = ReadyFrame.of(HOSTNAME, "chain", valid_from=1, valid_until=3, renew_after=2)
    assert "secret" not in repr(HandedOut(frame, "secret"))

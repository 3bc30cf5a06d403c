"""Texts of answers end up on terminals and in logs: they are cut, escaped, and without secrets."""

import json
from typing import Any

import pytest

from gateway.contract import (
    AnswerInvalid,
    CallError,
    ContextResponse,
    ReleaseResponse,
    RequestInvalid,
    WireModel,
    parse_answer,
    read_answer,
)

HOSTILE = "\x1b[2J\r\n\u202e" + "a" * 100_000


def failed(text: str, **data: object) -> CallError:
    body = json.dumps({"error": {"text": text, "data": data}})
    with pytest.raises(CallError) as raised:
        parse_answer(body.encode(), "getGatewayCapabilities", "7a1c")
    return raised.value


def test_text_of_an_error_is_cut_and_escaped() -> None:
    text = failed(HOSTILE, code="unauthorized").text
    assert text.startswith(r"\u{1b}[2J\u{d}\n\u{202e}aaa")
    assert text.isprintable()
    assert len(text) < 2_100


def test_text_of_an_error_keeps_the_letters_of_every_language() -> None:
    assert failed('Für "a.example.test" nicht.', code="unauthorized").text == (
        'Für "a.example.test" nicht.'
    )


def test_token_in_the_text_of_an_error_is_not_shown() -> None:
    error = failed("No: gwc_c7f3_kJ0xExample", code="unauthorized")
    assert str(error) == error.text == "No: gwc_(hidden)"


def test_data_of_an_error_is_cut_and_escaped() -> None:
    invalid = failed("No.", code="request-invalid", violations=[HOSTILE])
    assert isinstance(invalid, RequestInvalid)
    for text in (*invalid.violations, failed("No.", code=HOSTILE).code):
        assert text.isprintable()
        assert len(text) < 2_100


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ({"context": {"role": HOSTILE}}, ContextResponse),
        ({"context": {"role": "gwc_c7f3_kJ0xExample"}}, ContextResponse),
        ({"status": HOSTILE}, ReleaseResponse),
    ],
)
def test_value_that_is_none_of_those_expected_is_cut_and_escaped(
    wire: dict[str, Any], model: type[WireModel]
) -> None:
    with pytest.raises(AnswerInvalid) as refused:
        read_answer(model, wire)
    assert refused.value.text.isprintable()
    assert len(refused.value.text) < 1_000
    assert "kJ0x" not in refused.value.text

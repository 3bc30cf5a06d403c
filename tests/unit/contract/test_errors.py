from typing import Any

import pytest

from gateway.contract import (
    CallError,
    EnvelopeInvalid,
    Forbidden,
    HostnameForbidden,
    Internal,
    MethodUnknown,
    Overloaded,
    RequestInvalid,
    Unauthorized,
    Unavailable,
)


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (Unauthorized(), {"code": "unauthorized"}),
        (
            Forbidden("syncDnsRecords", "The client may not publish records."),
            {"code": "forbidden", "capability": "syncDnsRecords"},
        ),
        (Forbidden(None, "Only an admin may do this."), {"code": "forbidden", "capability": None}),
        (HostnameForbidden("a.example"), {"code": "hostname-forbidden"}),
        (
            RequestInvalid(["record is missing"]),
            {"code": "request-invalid", "violations": ["record is missing"]},
        ),
        (MethodUnknown(), {"code": "method-unknown"}),
        (Unavailable(1000), {"code": "unavailable", "retryAfterMs": 1000}),
        (Overloaded(250), {"code": "overloaded", "retryAfterMs": 250}),
        (Internal("i-1"), {"code": "internal", "incidentId": "i-1"}),
        (EnvelopeInvalid("The body is empty."), {"code": "envelope-invalid"}),
    ],
)
def test_error_has_the_data_of_its_code(error: CallError, data: dict[str, Any]) -> None:
    assert error.data() == data
    assert str(error) == error.text
    assert "\n" not in error.text


def test_call_errors_are_answered_with_200_and_envelope_errors_with_their_own_status() -> None:
    assert Unauthorized().http_status == 200
    assert EnvelopeInvalid("No.").http_status == 400
    assert EnvelopeInvalid("No.", http_status=413).http_status == 413


def test_unknown_method_is_told_in_the_words_of_the_ecosystem() -> None:
    expected = "There is no available method for this call on the server side"
    assert MethodUnknown().text == expected


def test_text_of_an_invalid_request_names_the_first_violation_and_counts_the_others() -> None:
    assert RequestInvalid(["a is missing"]).text == "The request is not valid: a is missing."
    several = RequestInvalid(["a is missing", "b is missing", "c is missing"])
    assert several.text == "The request is not valid: a is missing (and 2 more)."

"""What `gateway client` says and ends with for each error of the SDK."""

import pytest

from gateway.cli.client_connection import Where
from gateway.cli.client_failures import failure_of
from gateway.client import (
    AnswerInvalid,
    DeadlinePassed,
    EnvelopeInvalid,
    Forbidden,
    GatewayError,
    HostnameForbidden,
    Internal,
    IssuanceRefused,
    MethodUnknown,
    Overloaded,
    RequestInvalid,
    Unauthorized,
    Unavailable,
    UnknownFailure,
    Unreachable,
)

WHERE = Where("https://gateway.example.com", "the token file /etc/relay/token")
REFUSED_FOR_NOW = IssuanceRefused("a.example.test", "rate-limited", "No more.", 60_000)
REFUSED = IssuanceRefused("a.example.test", "hostname-conflict", "Held.", None)

EVERY_ERROR: list[tuple[GatewayError, int, str, str]] = [
    (Unauthorized(), 1, "unauthorized", "the token file /etc/relay/token"),
    (Forbidden("syncDnsRecords", "It lacks it."), 1, "forbidden", "shows the capabilities"),
    (Forbidden(None, "Not for it."), 1, "forbidden", "shows the role"),
    (HostnameForbidden("a.example.test"), 1, "hostname-forbidden", "shows the patterns"),
    (RequestInvalid(["record.ttl is odd"]), 2, "request-invalid", "--ttl is odd."),
    (EnvelopeInvalid("No call."), 1, "envelope-invalid", "No call."),
    (MethodUnknown(), 1, "method-unknown", "older than this command"),
    (UnknownFailure("Who knows.", "new-code"), 1, "new-code", "Who knows."),
    (Unavailable(2_000), 3, "unavailable", "Try again in 2.0 s."),
    (Overloaded(300_000), 3, "overloaded", "Try again in 5 minutes."),
    (Internal("i-1"), 1, "internal", "the incident i-1"),
    (AnswerInvalid("It is garbage."), 1, "answer-invalid", "It is garbage."),
    (
        DeadlinePassed("Too late.", may_have_arrived=True),
        *(3, "deadline-passed", "Try again later"),
    ),
    (Unreachable("Gone.", may_have_arrived=False), 3, "unreachable", "Is --url right"),
    (
        Unreachable("Strange.", may_have_arrived=False, is_lasting=True),
        *(1, "unreachable", "--ca-file"),
    ),
    (REFUSED_FOR_NOW, 3, "issuance-refused", "makes sense in 60 s."),
    (REFUSED, 1, "issuance-refused", "is no use until that changes"),
    (GatewayError("Something else."), 1, "client-failed", "Something else."),
]


@pytest.mark.parametrize(
    ("error", "exit_code", "code", "says"), EVERY_ERROR, ids=[each[2] for each in EVERY_ERROR]
)
def test_each_error_has_its_exit_code_its_code_and_a_next_step(
    error: GatewayError, exit_code: int, code: str, says: str
) -> None:
    failure = failure_of(error, WHERE)
    assert failure.exit_code == exit_code
    assert failure.view()["error"]["code"] == code
    assert says in failure.view()["error"]["text"]
    assert says in " ".join(failure.lines)


def test_unauthorized_names_the_gateway_too() -> None:
    assert WHERE.url in failure_of(Unauthorized(), WHERE).lines[0]


def test_violations_are_a_line_each_in_the_words_of_the_command_line() -> None:
    violations = [
        "ownership.hostname must be a hostname",
        "ownership.appId must be shorter",
        "record.value must be an address",
    ]
    failure = failure_of(RequestInvalid(violations), WHERE)
    assert failure.lines == (
        "HOSTNAME must be a hostname.",
        "--app-id must be shorter.",
        "--address must be an address.",
    )
    assert failure.view()["error"]["violations"] == violations


def test_data_of_an_error_goes_beside_its_code() -> None:
    assert failure_of(Unavailable(2_000), WHERE).view()["error"]["retryAfterMs"] == 2_000
    assert failure_of(Forbidden("x", "No."), WHERE).view()["error"]["capability"] == "x"
    assert failure_of(Internal("i-1"), WHERE).view()["error"]["incidentId"] == "i-1"


def test_refused_issuance_is_told_as_the_answer_was() -> None:
    error = failure_of(REFUSED_FOR_NOW, WHERE).view()["error"]
    assert (error["reason"], error["message"]) == ("rate-limited", "No more.")
    assert error["retryAfterMs"] == 60_000

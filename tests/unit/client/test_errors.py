"""Every error of a client can be copied, and sent from one process to another."""

import copy
import pickle
from collections.abc import Callable

import pytest

import gateway.client
from gateway.client import (
    AnswerInvalid,
    CallError,
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

ERRORS: list[GatewayError] = [
    AnswerInvalid("It breaks the contract."),
    DeadlinePassed("Too late.", may_have_arrived=False),
    EnvelopeInvalid("Not JSON.", 413),
    Forbidden("syncDnsRecords", "Not yours."),
    HostnameForbidden("a.example.test"),
    Internal("4711"),
    IssuanceRefused("a.example.test", "rate-limited", "No more orders.", 60_000),
    MethodUnknown(),
    Overloaded(2_000),
    RequestInvalid(["spec is missing", "action is missing"]),
    Unauthorized(),
    Unavailable(2_000, "Later."),
    UnknownFailure("Something new.", "new-code"),
    Unreachable("Full.", may_have_arrived=True, is_lasting=True, retry_after_ms=1_000),
]
WAYS: dict[str, Callable[[GatewayError], GatewayError]] = {
    "copied": copy.copy,
    "pickled": lambda error: pickle.loads(pickle.dumps(error)),  # noqa: S301  (its own)
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_is_the_same_after_it_was(error: GatewayError, way: str) -> None:
    again = WAYS[way](error)
    assert type(again) is type(error)
    assert (again.args, vars(again)) == (error.args, vars(error))


def test_every_error_is_tried() -> None:
    exported = {getattr(gateway.client, name) for name in gateway.client.__all__}
    errors = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Exception)}
    assert {type(error) for error in ERRORS} == errors - {GatewayError, CallError}


def test_message_of_a_refusal_is_bounded_and_printable_in_the_text() -> None:
    refused = IssuanceRefused("a.example.test", "rate-limited", "\x1b[2J" + "a" * 10_000, None)
    assert refused.text.isprintable()
    assert len(refused.text) < 2_200

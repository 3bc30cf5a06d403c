"""`docs/examples/cloudly` at a gateway that lies: it ends, says why, and hands its token to nobody.

No real gateway can be made to answer these; where it can, `test_cloudly` has the real one.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.examples.cloudly import Relay, installed_for
from tests.lab.certificates import LabAuthority
from tests.lab.liar import Answer, Liar, Says, by_method, failure, ready_with, response

HOSTNAME = "a1.example.test"
CLIENT = {"clientId": "cloudly:a1", "policyGeneration": 1}
MADE = response({"client": CLIENT, "credential": None, "apiToken": "gwc_0001_made"})
PUBLISHED = response(
    {"status": "managed-created", "conflictingRecords": [], "retryAfterMs": None, "message": ""}
)
PROVISION = "provisionGatewayClientCredential"
SYNC = "syncGatewayClientDnsRecord"
CERTIFICATE = "getGatewayClientCertificate"


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar() as liar:
        yield liar


@pytest.fixture
def relay(liar: Liar, tmp_path: Path) -> Relay:
    admin_token_file = tmp_path / "admin-token"
    admin_token_file.write_text("gwa_of_the_operator\n")
    return installed_for(HOSTNAME, tmp_path, liar.url, admin_token_file)


def say(liar: Liar, **answers: Answer) -> None:
    """Answer as a gateway does, but for these."""
    good = {PROVISION: MADE, SYNC: PUBLISHED, CERTIFICATE: response({"status": "pending"})}
    liar.answers(by_method(good | answers))


def failed_once(relay: Relay, liar: Liar, method: str) -> str:
    """What a run says that failed for good, after one call of the method."""
    done = relay.run()
    assert done.returncode == 1, done.stderr
    assert Counter(liar.methods)[method] == 1
    return done.stderr


# --- a status, a wait that nobody knows ---------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": "queued"}, 'an unknown status, "queued"'),
        ({"status": "queued", "retryAfterMs": 0, "message": "Later."}, '"queued": Later.'),
        ({}, "an unknown status, undefined"),
        ({"status": "pending"}, "(pending) whose retryAfterMs is no wait"),
        ({"status": "pending", "retryAfterMs": "5"}, 'whose retryAfterMs is no wait, but "5"'),
        ({"status": "pending", "retryAfterMs": -1}, "whose retryAfterMs is no wait, but -1"),
        ({"status": "pending", "retryAfterMs": None}, "no certificate: pending"),
        ({"status": "refused", "reason": "x", "message": "y"}, "(refused) whose retryAfterMs"),
    ],
)
def test_certificate_answer_that_is_unknown_ends_the_wait(
    relay: Relay, liar: Liar, answer: dict[str, object], said: str
) -> None:
    say(liar, **{CERTIFICATE: response(answer)})
    assert said in failed_once(relay, liar, CERTIFICATE)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": "managed-someday"}, 'an unknown status, "managed-someday"'),
        # A withdrawal is what nobody asked for.
        ({"status": "managed-deleted"}, 'an unknown status, "managed-deleted"'),
        ({"status": 5}, "an unknown status, 5"),
        ({"status": "mutation-failed"}, "(mutation-failed) whose retryAfterMs is no wait"),
    ],
)
def test_record_answer_that_is_unknown_is_no_success(
    relay: Relay, liar: Liar, answer: dict[str, object], said: str
) -> None:
    say(liar, **{SYNC: response(answer)})
    assert said in failed_once(relay, liar, SYNC)


def test_failure_with_a_wait_that_is_none_is_repeated_with_a_pause(
    relay: Relay, liar: Liar
) -> None:
    certificate = ready_with(LabAuthority().as_certificate(HOSTNAME))
    good = by_method({PROVISION: MADE, SYNC: PUBLISHED, CERTIFICATE: certificate})
    liar.answers(good, failure("unavailable", retryAfterMs="soon"), good)
    done = relay.run()
    assert done.returncode == 0, done.stderr
    assert Counter(liar.methods)[SYNC] == 2


# --- what is no answer to the call --------------------------------------------------------------


@pytest.mark.parametrize("body", [b"<html>", b"[]x", b"null", b"5", b""])
def test_body_that_is_no_object_is_told(relay: Relay, liar: Liar, body: bytes) -> None:
    liar.answers(body)
    assert "the answer is no JSON object" in failed_once(relay, liar, PROVISION)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"client": {"clientId": "cloudly:another"}, "apiToken": "gwc_0002_of_another"},
        {"client": CLIENT, "apiToken": 5},
        {"client": CLIENT, "apiToken": ""},
    ],
)
def test_client_that_was_not_asked_for_gets_no_token_file(
    relay: Relay, liar: Liar, answer: dict[str, object]
) -> None:
    say(liar, **{PROVISION: response(answer)})
    assert "the answer is not one to ensure" in failed_once(relay, liar, PROVISION)
    assert not relay.token_file.exists()


# --- other statuses of HTTP ---------------------------------------------------------------------


@pytest.mark.parametrize("status", [302, 307])
def test_token_does_not_follow_a_redirect(relay: Relay, liar: Liar, status: int) -> None:
    with Liar() as elsewhere:
        elsewhere.answers(MADE)
        liar.answers(Says(status=status, headers={"Location": elsewhere.url}))
        assert f"the status is {status}" in failed_once(relay, liar, PROVISION)
        assert elsewhere.connections == 0


def test_proxy_without_its_gateway_is_worth_another_run(relay: Relay, liar: Liar) -> None:
    liar.answers(Says(b"<html>", status=502))
    done = relay.run()
    assert done.returncode == 3
    assert "the status is 502" in done.stderr

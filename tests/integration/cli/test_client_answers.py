"""`gateway client` before a server that answers what no gateway does: a liar of the lab.

What it says can't steer the terminal, what breaks the contract changes nothing on disk, and what
passes by itself is passed over.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.clientside import LIMIT_SECONDS, PATH
from tests.lab import forks
from tests.lab.certificates import LabAuthority
from tests.lab.liar import HANG, Liar, failure, ready_with, response

HOSTNAME = "relay.example.test"
STEERING = "bad \x1b[2Jnews\nstatus       ready \u202e"
LATEST_MS = 253_402_300_799_999
TOKEN = "gwc_00aa_notasecretofanybody"


@pytest.fixture(scope="module")
def authority() -> LabAuthority:
    return LabAuthority()


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar() as server:
        yield server


def run(liar: Liar, *arguments: str | Path) -> Any:
    environ = {
        "PATH": PATH,
        "GATEWAY_URL": liar.url,
        "GATEWAY_TOKEN": TOKEN,
        "GATEWAY_APP_ID": "relay",
    }
    result = forks.run_command(["client", *map(str, arguments)], environ, LIMIT_SECONDS)
    assert TOKEN not in result.stdout + result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    assert "\u202e" not in result.stdout + result.stderr
    return result


def conflict(**changes: object) -> dict[str, object]:
    return {
        "status": "record-conflict",
        "hostname": HOSTNAME,
        "record": None,
        "conflictingRecords": [],
        "retryAfterMs": None,
        "message": "Something else holds the hostname.",
        **changes,
    }


def test_message_and_evidence_can_not_steer_the_terminal(liar: Liar) -> None:
    evidence = {"name": STEERING, "type": "TXT", "value": STEERING, "ttl": 1}
    liar.answers(response(conflict(message=STEERING, conflictingRecords=[evidence])))
    result = run(liar, "record", "delete", HOSTNAME)
    assert result.returncode == 1
    assert r"bad \x1b[2Jnews\nstatus       ready \u202e" in result.stderr
    assert len(result.stderr.splitlines()) == 5


def test_error_can_not_steer_the_terminal_and_its_code_may_be_unknown(liar: Liar) -> None:
    liar.answers(failure("from-the-future", text=STEERING))
    result = run(liar, "context")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("bad \\")
    assert len(result.stderr.splitlines()) == 1
    told = json.loads(run(liar, "context", "--json").stdout)
    assert told["error"]["code"] == "from-the-future"


def test_progress_can_not_steer_the_terminal(liar: Liar, authority: LabAuthority) -> None:
    refusal = {
        "status": "refused",
        "reason": "rate-limited",
        "message": STEERING,
        "retryAfterMs": 100,
    }
    liar.answers(response(refusal), ready_with(authority.as_certificate(HOSTNAME)))
    result = run(liar, "certificate", "wait", HOSTNAME)
    assert result.returncode == 0
    assert r"rate-limited: bad \x1b[2Jnews\nstatus" in result.stderr.splitlines()[0]


def test_what_is_no_terminal_gets_one_plain_line_while_nothing_changes(
    liar: Liar, authority: LabAuthority
) -> None:
    pending = response({"status": "pending", "retryAfterMs": 1})
    liar.answers(pending, pending, pending, ready_with(authority.as_certificate(HOSTNAME)))
    result = run(liar, "certificate", "wait", HOSTNAME)
    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{HOSTNAME}: issuance under way; ")


def test_certificate_for_another_name_is_refused_and_changes_no_file(
    liar: Liar, authority: LabAuthority, tmp_path: Path
) -> None:
    issued = authority.issue("other.example.test").as_certificate(HOSTNAME)
    liar.ready_with(issued)
    (tmp_path / "privkey.pem").write_text("mine")
    result = run(liar, "certificate", "get", HOSTNAME, "--out", tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "other.example.test" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["privkey.pem"]
    assert (tmp_path / "privkey.pem").read_text() == "mine"
    told = json.loads(run(liar, "certificate", "get", HOSTNAME, "--json").stdout)
    assert told["error"]["code"] == "answer-invalid"


def test_latest_time_that_there_is_can_be_shown(liar: Liar, authority: LabAuthority) -> None:
    wire = authority.as_certificate(HOSTNAME).to_wire()
    liar.ready_with(wire | {"renewAfter": LATEST_MS})
    result = run(liar, "certificate", "get", HOSTNAME)
    assert result.returncode == 0
    assert "renew after  9999-12-31 23:59:59 UTC" in result.stdout


def test_refusal_that_says_when_ends_with_3(liar: Liar) -> None:
    refusal = {
        "status": "refused",
        "reason": "rate-limited",
        "message": "The authority takes no more orders.",
        "retryAfterMs": 3_600_000,
    }
    liar.answers(response(refusal))
    got = run(liar, "certificate", "get", HOSTNAME)
    assert got.returncode == 3
    assert "Run the same again in 60 minutes" in got.stderr
    waited = run(liar, "certificate", "wait", HOSTNAME)
    assert waited.returncode == 3
    assert "Asking again makes sense in 60 minutes." in waited.stderr


def test_record_that_may_be_asked_for_again_ends_with_3(liar: Liar) -> None:
    liar.answers(response(conflict(status="mutation-failed", retryAfterMs=5_000)))
    result = run(liar, "record", "delete", HOSTNAME)
    assert result.returncode == 3
    assert "Run the same again in 5.0 s; that does no harm." in result.stderr


@pytest.mark.parametrize("code", ["unavailable", "overloaded"])
def test_gateway_that_can_not_answer_now_ends_with_3(liar: Liar, code: str) -> None:
    liar.answers(failure(code, retryAfterMs=60_000))
    result = run(liar, "context")
    assert result.returncode == 3
    assert "Try again in 60 s." in result.stderr
    error = json.loads(run(liar, "context", "--json").stdout)["error"]
    assert (error["code"], error["retryAfterMs"]) == (code, 60_000)


def test_gateway_that_is_silent_ends_with_3_at_the_deadline(liar: Liar) -> None:
    liar.answers(HANG)
    result = run(liar, "context", "--deadline", "0.2")
    assert result.returncode == 3
    assert "had no answer within 0.2 seconds" in result.stderr


def test_incident_of_a_gateway_is_told(liar: Liar) -> None:
    liar.answers(failure("internal", incidentId="i-4711"))
    result = run(liar, "context")
    assert result.returncode == 1
    assert "Tell the operator the incident i-4711." in result.stderr


def test_facility_that_is_not_set_up_is_told(liar: Liar) -> None:
    facilities = {
        "dns": {"clientRecords": False},
        "certificates": {"exactIssuance": True},
    }
    liar.answers(response({"capabilities": facilities}))
    assert run(liar, "capabilities").stdout.splitlines() == [
        "records      no: not set up on this gateway",
        "certificates yes",
    ]

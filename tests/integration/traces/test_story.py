"""What a collector gets of calls and of an issuance: names, attributes, and what is below what."""

import re

import pytest

from tests.integration.service.calling import CONTEXT, GET, PROVISION, SYNC
from tests.integration.traces.conftest import NO_METHOD, SECRET_HEADER, SERVICE, Story
from tests.lab.otlp import Span


@pytest.fixture
def sync(story: Story) -> Span:
    """The call that came with its caller's trace."""
    (found,) = story.named(SYNC, outcome="managed-created")
    return found


def test_call_is_below_its_callers_own_span(story: Story, sync: Span) -> None:
    assert (sync.trace, sync.parent) == (story.caller_trace, story.caller_span)
    assert sync.kind == "server"


def test_call_says_who_asked_for_what(story: Story, sync: Span) -> None:
    assert sync.attributes == {
        "client.address": "127.0.0.1",
        "rpc.method": SYNC,
        "gateway.request_id": story.request_id,
        "gateway.credential": sync.attributes["gateway.credential"],
        "gateway.hostname": story.mine.hostname,
        "gateway.app_id": story.mine.app_id,
        "gateway.outcome": "managed-created",
    }
    assert not sync.has_failed
    (provisioned, *_) = story.named(PROVISION)
    assert provisioned.attributes["gateway.credential"] == "admin"


def test_credential_is_the_one_that_the_log_names(story: Story, sync: Span) -> None:
    (line,) = [
        line
        for line in story.gateway.log_lines
        if line["event"] == "call answered" and line["request_id"] == story.request_id
    ]
    assert line["credential"] == sync.attributes["gateway.credential"]
    assert line["trace_id"] == story.caller_trace


def test_worker_lines_name_their_trace(story: Story) -> None:
    (line,) = [line for line in story.gateway.log_lines if line["event"] == "certificate issued"]
    assert line["trace_id"] in {span.trace for span in story.named("work")}


def test_what_a_call_asks_of_others_is_below_it(story: Story, sync: Span) -> None:
    below = story.below(sync)
    assert all(each.trace == sync.trace and each.kind == "client" for each in below)
    host, port = story.bind.primary
    update = [each for each in below if each.name == "DNS update"][-1]
    assert update.attributes == {
        "gateway.zone": "example.test",
        "gateway.dns.kind": "update",
        "gateway.dns.rcode": "NOERROR",
        "dns.question.name": "example.test",
        "server.address": host,
        "server.port": port,
        "network.transport": update.attributes["network.transport"],
    }
    asked = [each for each in below if each.name == "DNS query"]
    assert story.mine.hostname in {each.attributes["dns.question.name"] for each in asked}
    commands = [each for each in below if each.attributes.get("db.system.name") == "redis"]
    assert commands
    for each in commands:
        assert each.name == f"Redis {each.attributes['db.operation.name']}"


def test_conflict_is_an_outcome_and_no_failure(story: Story) -> None:
    (conflict,) = story.named(SYNC, outcome="record-conflict")
    assert conflict.attributes["gateway.hostname"] == story.mine.hostname
    assert not conflict.has_failed
    assert conflict.parent == ""


def test_method_that_there_is_not_is_called_unknown(story: Story) -> None:
    (refused,) = story.named("unknown")
    assert refused.attributes["gateway.outcome"] == "method-unknown"
    assert "gateway.credential" not in refused.attributes
    assert not [span for span in story.spans if NO_METHOD in repr(span)]


def test_issuance_is_steps_below_the_workers_turns(story: Story) -> None:
    turns = story.named("work", hostname=story.mine.hostname)
    assert {turn.parent for turn in turns} == {""}
    steps = [each for turn in turns for each in story.below(turn) if each.name.startswith("step ")]
    assert len({each.attributes["gateway.issuance.id"] for each in steps}) == 1
    by_event = {each.attributes["gateway.issuance.event"]: each for each in steps}
    placed = next(each for each in steps if each.name == "step place-order")
    assert "ACME newOrder" in {each.name for each in story.below(placed)}
    published = by_event["ChallengePublished"]
    assert "DNS update" in {each.name for each in story.below(published)}
    fetched = by_event["CertificateFetched"]
    names = {each.name for each in story.below(fetched)}
    assert any(name.startswith("ACME ") for name in names), names


def test_acme_calls_name_authority_and_answer(story: Story) -> None:
    order = story.named("ACME newOrder", outcome="ok")[-1]
    assert order.attributes == {
        "gateway.authority": "127.0.0.1",
        "gateway.acme.operation": "newOrder",
        "gateway.outcome": "ok",
        "http.response.status_code": 201,
    }


def test_step_names_its_state_and_the_next(story: Story) -> None:
    steps = [each for each in story.spans if each.name.startswith("step ")]
    led = {
        (each.attributes["gateway.issuance.state"], each.attributes["gateway.issuance.next_state"])
        for each in steps
    }
    assert {("requested", "ordered"), ("ordered", "published"), ("finalizing", "issued")} <= led


def test_nothing_is_traced_that_nobody_asked_for(story: Story) -> None:
    roots = {each.name for each in story.spans if each.parent == ""}
    assert roots <= {SYNC, GET, PROVISION, CONTEXT, "unknown", "work"}


def test_process_is_told(story: Story) -> None:
    for span in story.spans:
        assert span.resource["service.name"] == SERVICE
        assert span.resource["process.pid"] == story.gateway.pid
        assert span.resource["service.instance.id"]
        assert re.fullmatch(r"\d+\.\d+.*", str(span.resource["service.version"]))


def test_header_of_the_file_goes_along(story: Story) -> None:
    assert {span.headers.get("x-collector-token") for span in story.spans} == {SECRET_HEADER}


def test_no_secret_is_in_a_span(story: Story) -> None:
    said = repr([(span.name, span.attributes, span.resource) for span in story.spans])
    secrets = (
        story.mine.caller.token,
        story.world.admin.token,
        story.bind.tsig.secret_base64,
        SECRET_HEADER,
    )
    for secret in secrets:
        assert secret is not None
        assert secret not in said
    assert "gwc_" not in said
    assert SECRET_HEADER not in story.gateway.process.log_file.read_text()

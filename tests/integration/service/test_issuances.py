"""`gateway issuances`: what an operator reads of an issuance on the way, at rest, in trouble."""

import json
from typing import Any

import redis

from tests.integration.service.calling import CONTEXT, Ownership, World
from tests.integration.service.inside import resting_while_published, stored
from tests.integration.service.test_commands import gateway
from tests.lab.lab import Lab
from tests.lab.process import wait_until


def listed(lab: Lab, *arguments: str) -> dict[str, dict[str, Any]]:
    result = gateway(lab, "issuances", "list", "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return {each["hostname"]: each for each in json.loads(result.stdout)}


def shown(lab: Lab, hostname: str) -> dict[str, Any]:
    result = gateway(lab, "issuances", "show", hostname, "--json")
    assert result.returncode == 0, result.stderr
    view: dict[str, Any] = json.loads(result.stdout)
    return view


def test_issuance_on_the_way_says_where_it_stands(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    with resting_while_published(service_lab, mine):
        found = listed(service_lab)[mine.hostname]
        published = listed(service_lab, "--state", "published")
        assert mine.hostname not in listed(service_lab, "--state", "waiting")
        nothing = gateway(service_lab, "issuances", "list", "--state", "finalizing")
        text = gateway(service_lab, "issuances", "show", mine.hostname).stdout
    assert (nothing.stdout, nothing.stderr) == ("", "Nothing is in the state finalizing.\n")
    assert mine.hostname in published
    assert (found["clientId"], found["appId"]) == (client_id, mine.app_id)
    assert found["state"] == found["issuance"]["state"] == "published"
    challenge = f"_acme-challenge.{mine.hostname}"
    assert found["next"]["what"] == f"ask the name servers again for the challenge at {challenge}"
    assert found["next"]["at"] >= found["since"]
    assert found["issuance"]["challengeName"] == challenge
    assert found["issuance"]["authority"] == "127.0.0.1"
    assert found["certificate"] is None
    assert [debt["kind"] for debt in found["debts"]] == ["challenge-record"]
    assert f"{challenge} TXT {found['issuance']['challengeValue']}" in text
    assert "published since" in text


def test_certificate_at_rest_says_when_it_is_renewed(service_lab: Lab, mine: Ownership) -> None:
    certificate = mine.certificate()
    wait_until(
        lambda: shown(service_lab, mine.hostname)["state"] == "at-rest", "the debts are paid"
    )
    found = shown(service_lab, mine.hostname)
    assert found["certificate"]["validUntil"] == certificate["validUntil"]
    assert found["certificate"]["renewAfter"] == certificate["renewAfter"]
    assert found["certificate"]["renewAt"] < certificate["renewAfter"]
    assert found["issuance"] is None
    assert found["next"]["at"] <= found["certificate"]["renewAt"]
    assert mine.hostname not in listed(service_lab)
    assert listed(service_lab, "--all")[mine.hostname]["state"] == "at-rest"
    assert mine.hostname in listed(service_lab, "--state", "at-rest")
    assert mine.hostname not in listed(service_lab, "--state", "cleaning-up")
    text = gateway(service_lab, "issuances", "show", mine.hostname).stdout
    assert "valid until" in text
    assert "renewal at" in text


def test_certificate_keeps_when_its_issuance_came_to_each_stage(
    service_lab: Lab, mine: Ownership
) -> None:
    with resting_while_published(service_lab, mine):
        under_way = json.loads(stored(service_lab, mine.hostname)["issuance"])["passed_ms"]
    mine.certificate()
    stages = json.loads(stored(service_lab, mine.hostname)["certificate"])["stages_ms"]
    assert list(under_way) == ["requested", "ordered", "published"]
    assert under_way.items() <= stages.items()
    assert list(stages) == [
        *("requested", "ordered", "published", "propagated"),
        *("validating", "ready", "finalizing", "issued"),
    ]
    assert sorted(stages.values()) == list(stages.values())


def test_issuance_in_trouble_says_why_and_when_it_goes_on(
    service_lab: Lab, mine: Ownership
) -> None:
    """Failed as the CA would have it, put into Redis: its words and times are exact then."""
    mine.certificate()
    document = stored(service_lab, mine.hostname)
    since = json.loads(document["certificate"])["valid_from_ms"]
    issuance = {
        "issuance_id": "i",
        "state": "failed",
        "begun_at_ms": since,
        "changed_at_ms": since,
        "due_at_ms": 4_000_000_000_000,
        "failures": 3,
        "faults": 1,
        "looks": 0,
        "reason": "issuance-failed",
        "message": "CAA forbids issuance",
    }
    with redis.Redis.from_url(service_lab.redis.url, decode_responses=True) as connection:
        (key,) = connection.scan_iter(match=f"*:host:{mine.hostname}")
        connection.hset(key, "issuance", json.dumps(issuance))
    found = listed(service_lab, "--state", "failed")[mine.hostname]
    assert found["issuance"]["reason"] == "issuance-failed"
    assert found["issuance"]["message"] == "CAA forbids issuance"
    assert (found["issuance"]["failures"], found["issuance"]["faults"]) == (3, 1)
    assert found["next"] == {
        "what": "try it all again with a new key: a new order, the challenge in the zone,"
        " the validation",
        "at": 4_000_000_000_000,
    }
    line = next(
        line
        for line in gateway(service_lab, "issuances", "list").stdout.splitlines()
        if line.startswith(mine.hostname)
    )
    assert "issuance-failed: CAA forbids issuance" in line
    assert "the challenge in the zone, the validation, in " in line
    assert mine.release() == "released"


def test_list_begins_with_the_oldest(service_lab: Lab, world: World) -> None:
    names = [each.hostname for each in (world.ownership(), world.ownership()) if each.certificate()]
    ages = [each["since"] for each in listed(service_lab, "--all").values()]
    assert len(ages) >= len(names)
    assert ages == sorted(ages)


def test_nothing_that_is_shown_holds_a_key(service_lab: Lab, mine: Ownership) -> None:
    mine.certificate()
    sealed = json.loads(stored(service_lab, mine.hostname)["certificate"])["sealed_key"]
    for arguments in (["list", "--all"], ["show", mine.hostname]):
        for more in ([], ["--json"]):
            text = gateway(service_lab, "issuances", *arguments, *more).stdout
            assert mine.hostname in text
            assert sealed not in text
            assert "sealed" not in text.lower()
            assert "PRIVATE KEY" not in text


def test_hostname_with_nothing_to_show_is_told_in_one_sentence(
    service_lab: Lab, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    for hostname in ("unheard-of.example.test", mine.hostname):
        result = gateway(service_lab, "issuances", "show", hostname)
        assert result.returncode == 1
        assert result.stderr == f"Nothing is issued or under way for {hostname}.\n"


def test_what_is_no_hostname_is_refused(service_lab: Lab) -> None:
    result = gateway(service_lab, "issuances", "show", "*.example.test")
    assert result.returncode == 2
    assert result.stderr.startswith("HOSTNAME ")

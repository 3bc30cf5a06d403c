"""`gateway issuances retry`: a renewal that fails is tried again once its cause is gone."""

import json
from concurrent.futures import ThreadPoolExecutor
from subprocess import CompletedProcess
from typing import Any

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import PROVISION, Ownership, World
from tests.integration.service.inside import (
    at_rest,
    delegated_away,
    orders_placed,
    resting_while_published,
    stored,
)
from tests.integration.service.test_commands import gateway
from tests.integration.service.trailing import told_of, who
from tests.lab.lab import Lab

LONG = "30"


def retry(lab: Lab, hostname: str, *more: str, wait: str = LONG) -> CompletedProcess[str]:
    return gateway(lab, "issuances", "retry", hostname, "--wait", wait, *more)


def serial(lab: Lab, mine: Ownership) -> str:
    certificate: dict[str, Any] = json.loads(stored(lab, mine.hostname)["certificate"])
    return str(certificate["serial"])


def test_failed_issuance_is_issued_at_once_when_its_cause_is_gone(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    at_rest(service_lab, mine)
    former = serial(service_lab, mine)
    with delegated_away(hand, mine.hostname):
        failed = retry(service_lab, mine.hostname, "--renew")
        assert failed.stdout == f"{mine.hostname} is renewed now, with a new key.\n"
        assert failed.returncode == 1
        assert f"{mine.hostname} failed (zone-unavailable): " in failed.stderr
        assert "It is tried again at 20" in failed.stderr
    done = retry(service_lab, mine.hostname)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"{mine.hostname} looks for an authority that has room for an order now."
    assert second.startswith(f"{mine.hostname} has its certificate: serial ")
    assert serial(service_lab, mine) != former
    assert mine.get()["status"] == "ready"


def test_retry_is_told_in_the_trail_as_the_operators(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    client_id, _ = who(mine.caller)
    at_rest(service_lab, mine)
    refused = retry(service_lab, mine.hostname)
    assert refused.returncode == 1
    assert ". With --renew it is renewed now.\n" in refused.stderr
    with delegated_away(hand, mine.hostname):
        retry(service_lab, mine.hostname, "--renew")
    retry(service_lab, mine.hostname)
    entries = told_of(
        service_lab,
        mine.hostname,
        ("certificate-retry", "refused"),
        ("certificate-retry", "renewal"),
        ("certificate-retry", "anew"),
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
        ("certificate-failed", "zone-unavailable"),
        ("certificate-renewed", "issued"),
    )
    refusal, renewal, anew = entries[:3]
    assert {entry["who"] for entry in entries[:3]} == {"operator"}
    assert "whose renewal is due at" in refusal["detail"]
    assert "--renew" not in refusal["detail"]
    assert (renewal["clientId"], renewal["appId"]) == (client_id, mine.app_id)
    assert anew["before"].startswith("failed: ")
    assert anew["detail"] == renewal["detail"]


def test_two_retries_at_once_place_one_order(service_lab: Lab, mine: Ownership) -> None:
    at_rest(service_lab, mine)
    before = orders_placed(service_lab)
    with ThreadPoolExecutor(2) as threads:
        both = list(
            threads.map(lambda _: retry(service_lab, mine.hostname, "--renew", "--json"), "ab")
        )
    done = [json.loads(each.stdout) for each in both if each.returncode == 0]
    refused = [each.stderr for each in both if each.returncode != 0]
    assert [each["standing"] for each in done] == ["issued"] * len(done)
    assert len(done) >= 1, refused
    # The other came while the first was under way, or when all was done.
    assert all("under way already" in each or "worked on by" in each for each in refused)
    assert orders_placed(service_lab) == before + len(done)


def test_what_is_under_way_is_left_to_its_worker(service_lab: Lab, mine: Ownership) -> None:
    with resting_while_published(service_lab, mine):
        refused = retry(service_lab, mine.hostname, "--renew")
    assert refused.returncode == 1
    assert ", in the state published" in refused.stderr
    assert mine.certificate()


def test_certificate_that_its_client_may_not_have_any_more_is_not_renewed(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    client_id, _ = who(mine.caller)
    at_rest(service_lab, mine)
    world.admin.call(PROVISION, action="revoke", spec={"clientId": client_id})
    refused = retry(service_lab, mine.hostname, "--renew")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"{client_id} may not have a certificate for {mine.hostname}")
    assert "now: its client is revoked: it has no live token." in refused.stderr
    shown = gateway(service_lab, "issuances", "show", mine.hostname).stdout
    assert "no new certificate is ordered, since its client is revoked" in shown
    (listed,) = [
        each
        for each in gateway(service_lab, "issuances", "list", "--all").stdout.splitlines()
        if each.startswith(mine.hostname)
    ]
    assert "no new certificate is ordered, since its client is revoked" in listed
    told = json.loads(gateway(service_lab, "issuances", "show", mine.hostname, "--json").stdout)
    assert told["denied"] == "its client is revoked: it has no live token"
    assert "issuance" not in stored(service_lab, mine.hostname)


def test_programs_are_told_what_came_of_it(service_lab: Lab, mine: Ownership) -> None:
    client_id, _ = who(mine.caller)
    at_rest(service_lab, mine)
    told = json.loads(retry(service_lab, mine.hostname, "--renew", "--json").stdout)
    assert (told["hostname"], told["clientId"], told["appId"]) == (
        mine.hostname,
        client_id,
        mine.app_id,
    )
    assert (told["began"], told["standing"], told["state"]) == ("renewal", "issued", None)
    assert told["serial"] == serial(service_lab, mine)


def test_nothing_is_tried_where_nothing_is_known(service_lab: Lab) -> None:
    refused = retry(service_lab, "unheard-of.example.test", "--renew")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "Nothing is issued or under way for unheard-of.example.test.\n"


def test_several_hostnames_are_tried_at_once_and_each_is_told(
    service_lab: Lab, world: World, hand: Hand
) -> None:
    both = [world.ownership(), world.ownership()]
    for mine in both:
        at_rest(service_lab, mine)
    nobodys = f"nobody.{both[0].hostname}"
    names = [mine.hostname for mine in both]
    with delegated_away(hand, names[0]), delegated_away(hand, names[1]):
        failed = retry(service_lab, names[0], names[1], nobodys, "--renew", "--json")
        assert failed.returncode == 1
        told = {each["hostname"]: each for each in json.loads(failed.stdout)}
        assert [told[name]["standing"] for name in names] == ["failed", "failed"]
        assert told[nobodys]["refused"] == f"Nothing is issued or under way for {nobodys}."
        assert failed.stderr == f"{told[nobodys]['refused']}\n"
    done = gateway(service_lab, "issuances", "retry", "--state", "failed", "--wait", LONG)
    for name in names:
        assert f"{name} looks for an authority" in done.stdout
        assert f"{name} has its certificate: serial " in done.stdout


def test_neither_hostnames_nor_a_state_is_a_wrong_command(service_lab: Lab) -> None:
    for more in ((), ("a.example.test", "--state", "failed")):
        wrong = gateway(service_lab, "issuances", "retry", *more)
        assert (wrong.returncode, wrong.stderr) == (2, "Name HOSTNAMEs, or a --state.\n")

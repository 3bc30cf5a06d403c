"""`gateway holdings release` and `withdraw`: by the operator's hand what a client's calls do."""

import json
from subprocess import CompletedProcess
from typing import Any

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Ownership, World
from tests.integration.service.inside import resting_while_published, stored
from tests.integration.service.test_commands import gateway
from tests.integration.service.trailing import told_of, who
from tests.lab.lab import Lab
from tests.lab.process import wait_until

ADDRESS = "198.51.100.5"


def holder(mine: Ownership) -> str:
    return f"{who(mine.caller)[0]}:{mine.app_id}"


def command(lab: Lab, name: str, hostname: str, holder: str, *more: str) -> CompletedProcess[str]:
    return gateway(lab, "holdings", name, hostname, "--from", holder, *more)


def answer(lab: Lab, name: str, hostname: str, holder: str) -> dict[str, Any]:
    result = command(lab, name, hostname, holder, "--json")
    assert result.returncode == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def test_certificate_is_released_and_its_client_may_have_another(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    client_id, _ = who(mine.caller)
    mine.publish(ADDRESS)
    former = mine.certificate()
    released = command(service_lab, "release", mine.hostname, holder(mine))
    assert released.stdout == (
        f"The certificate of {client_id} for {mine.app_id} at {mine.hostname} is released."
        " Its record stays in the zone.\n"
    ), released.stderr
    assert "certificate" not in stored(service_lab, mine.hostname)
    again = command(service_lab, "release", mine.hostname, holder(mine))
    assert again.returncode == 0
    assert "nothing was released" in again.stdout
    assert mine.certificate()["chainPem"] != former["chainPem"]
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"


def test_issuance_on_the_way_is_released(service_lab: Lab, mine: Ownership) -> None:
    client_id, _ = who(mine.caller)
    with resting_while_published(service_lab, mine):
        told = answer(service_lab, "release", mine.hostname, holder(mine))
    assert told == {
        "hostname": mine.hostname,
        "clientId": client_id,
        "appId": mine.app_id,
        "status": "released",
        "keepsRecord": False,
    }
    wait_until(lambda: not stored(service_lab, mine.hostname), "what it left is cleaned up")
    assert mine.release() == "unchanged"


def test_record_is_withdrawn_and_its_client_may_publish_again(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    mine.certificate()
    withdrawn = command(service_lab, "withdraw", mine.hostname, holder(mine))
    assert withdrawn.returncode == 0, withdrawn.stderr
    client_id, _ = who(mine.caller)
    assert withdrawn.stdout.startswith(
        f"{mine.hostname}: A {ADDRESS} of {client_id} for {mine.app_id} is taken out of the zone."
    )
    assert withdrawn.stdout.endswith(" Its certificate stays.\n")
    assert hand.records(mine.hostname) == set()
    assert mine.get()["status"] == "ready"
    told = answer(service_lab, "withdraw", mine.hostname, holder(mine))
    assert (told["status"], told["keepsCertificate"]) == ("managed-deleted", True)
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_what_another_has_come_to_hold_is_not_touched(
    service_lab: Lab, world: World, hand: Hand, mine: Ownership
) -> None:
    rival = world.rival(mine)
    rival.publish(ADDRESS)
    rival.certificate()
    records, document = hand.records(mine.hostname), stored(service_lab, mine.hostname)
    actual = f"{who(rival.caller)[0]} for {rival.app_id}"
    mistaken = f"{who(mine.caller)[0]} for {mine.app_id}"
    for name in ("release", "withdraw"):
        refused = command(service_lab, name, mine.hostname, holder(mine))
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == f"{mine.hostname} is held by {actual}, not by {mistaken}.\n"
    assert hand.records(mine.hostname) == records
    after = stored(service_lab, mine.hostname)
    assert (after["holder"], after["record"]) == (document["holder"], document["record"])
    assert "certificate" in after


def test_address_that_was_edited_by_hand_stays(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    hand.update(f"delete {mine.hostname} A", f"add {mine.hostname} 300 A 192.0.2.44")
    withdrawn = command(service_lab, "withdraw", mine.hostname, holder(mine))
    stays = "its marker is gone; A 192.0.2.44, which somebody else wrote, is still there"
    assert withdrawn.stdout.endswith(f" is given up. I{stays[1:]}.\n")
    _, told = told_of(
        service_lab,
        mine.hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "managed-deleted"),
    )
    assert told["detail"] == stays
    assert not told.keys() & {"before", "after"}
    assert {each.split()[-1] for each in hand.records(mine.hostname)} == {"192.0.2.44"}


def test_record_stays_held_while_its_zone_does_not_answer(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    primary = service_lab.bind.primary_process
    primary.pause()
    try:
        refused = command(service_lab, "withdraw", mine.hostname, holder(mine))
    finally:
        primary.resume()
    assert (refused.returncode, refused.stdout) == (1, "")
    start = f"Nothing was withdrawn at {mine.hostname} (zone-unavailable): "
    assert refused.stderr.startswith(start)
    assert "record" in stored(service_lab, mine.hostname)
    answer(service_lab, "withdraw", mine.hostname, holder(mine))
    assert hand.records(mine.hostname) == set()


def test_deeds_are_told_in_the_trail_as_the_operators(service_lab: Lab, mine: Ownership) -> None:
    client_id, _ = who(mine.caller)
    mine.publish(ADDRESS)
    mine.certificate()
    command(service_lab, "release", mine.hostname, "nobody:relay")
    command(service_lab, "release", mine.hostname, holder(mine))
    command(service_lab, "withdraw", mine.hostname, "nobody:relay")
    command(service_lab, "withdraw", mine.hostname, holder(mine))
    entries = told_of(
        service_lab,
        mine.hostname,
        ("certificate-release", "refused"),
        ("certificate-release", "released"),
        ("record-sync", "refused"),
        ("record-sync", "managed-deleted"),
        ("record-sync", "managed-created"),
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
    )[:4]
    assert {entry["who"] for entry in entries} == {"operator"}
    refusal, released, _, withdrawn = entries
    assert "held by" in refusal["detail"]
    assert (released["clientId"], released["before"]) == (client_id, "certificate")
    assert withdrawn["before"] == f"A {ADDRESS} 300"


def test_holder_that_is_none_is_refused(service_lab: Lab, mine: Ownership) -> None:
    refused = command(service_lab, "withdraw", mine.hostname, "no-app-id")
    assert refused.returncode == 2
    assert refused.stderr.startswith("--from must be CLIENT:APPID")

"""Single rounds, in this process: outcomes of the gateway, access that changes, disks that fail."""

import stat

import pytest

from tests.integration.agent.machine import ADDRESS, Machine, MovedClock, managed
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import SYNC, Ownership
from tests.lab.certificates import LabAuthority
from tests.lab.liar import (
    HANG,
    Answer,
    Envelope,
    Liar,
    by_method,
    failure,
    ready_with,
    response,
)

authority = LabAuthority()
CERTIFY = "getGatewayClientCertificate"
HOUR_MS = 3_600_000
YEAR_9999_MS = 253_402_300_799_999
SOON = response({"status": "pending", "retryAfterMs": 0})


def refused(reason: str, retry_after_ms: int | None) -> Answer:
    return response(
        {
            "status": "refused",
            "reason": reason,
            "message": "Not now.",
            "retryAfterMs": retry_after_ms,
        }
    )


async def test_access_that_is_changed_makes_a_new_version_and_runs_the_hook(
    misled: Machine, liar: Liar
) -> None:
    liar.ready_with(authority.as_certificate(misled.hostname))
    misled.configure_certificate()
    await misled.once_here()
    served = misled.served()
    hook = f"echo again >> {misled.hook_log}"
    misled.configure(certificate={"deploy_hook": hook, "key_mode": "0640"})
    ran = await misled.once_here()
    assert "written anew" in ran.said[0]
    assert (len(liar.methods), misled.served()) == (1, served)
    assert stat.S_IMODE((misled.live / "privkey.pem").stat().st_mode) == 0o640
    assert misled.hooks_run()[1:] == ["again"]


async def test_pending_issuance_is_waited_for_as_the_gateway_says(
    misled: Machine, liar: Liar
) -> None:
    liar.answers(SOON, SOON, ready_with(authority.as_certificate(misled.hostname)))
    misled.configure_certificate()
    assert (await misled.once_here()).code == 0
    assert len(liar.methods) == 3


async def test_refusal_with_a_wait_within_the_timeout_is_waited_for(
    misled: Machine, liar: Liar
) -> None:
    good = ready_with(authority.as_certificate(misled.hostname))
    liar.answers(refused("authority-unavailable", 100), good)
    misled.configure_certificate()
    assert (await misled.once_here()).code == 0


async def test_refusal_with_a_longer_wait_is_not_yet(misled: Machine, liar: Liar) -> None:
    liar.answers(refused("rate-limited", 3_600_000))
    misled.configure_certificate()
    ran = await misled.once_here()
    assert (ran.code, len(liar.methods)) == (3, 1)
    assert "rate-limited: Not now." in ran.complaint


async def test_hostname_outside_of_the_policy_needs_a_person(misled: Machine, liar: Liar) -> None:
    liar.answers(failure("hostname-forbidden", text="No pattern matches."))
    misled.configure(record={"value": ADDRESS})
    ran = await misled.once_here()
    assert ran.code == 1
    assert "record: No pattern matches." in ran.complaint


async def test_fault_of_the_gateway_is_not_yet(misled: Machine, liar: Liar) -> None:
    liar.answers(failure("internal", incidentId="1f3c"))
    misled.configure(record={"value": ADDRESS})
    assert (await misled.once_here(timeout_seconds=0.5)).code == 3


async def test_record_of_another_one_is_not_published(machine: Machine, zone_hand: Hand) -> None:
    zone_hand.add(f"{machine.hostname} 300 A 192.0.2.7")
    machine.configure(record={"value": ADDRESS})
    assert (await machine.once_here()).code == 1
    assert zone_hand.records(machine.hostname) == {"300 A 192.0.2.7"}
    assert machine.remembered()["published"] is None


async def test_source_that_fails_leaves_what_is_remembered(
    machine: Machine, zone_hand: Hand
) -> None:
    machine.configure(record={"value": ADDRESS, "ttl": 60})
    await machine.once_here()
    machine.configure(record={"command": ["false"], "ttl": 60})
    assert (await machine.once_here(timeout_seconds=0.1)).code == 3
    assert machine.remembered()["published"]["value"] == ADDRESS
    assert f"60 A {ADDRESS}" in zone_hand.records(machine.hostname)


async def test_live_name_that_is_another_s_is_left_alone_and_told(
    misled: Machine, liar: Liar
) -> None:
    liar.ready_with(authority.as_certificate(misled.hostname))
    misled.configure_certificate()
    misled.live.mkdir(parents=True)
    ran = await misled.once_here()
    assert ran.code == 1
    assert str(misled.live) in ran.complaint
    assert misled.hooks_run() == []


async def test_metrics_that_cannot_be_written_are_told_and_no_reason_not_to_serve(
    misled: Machine, liar: Liar
) -> None:
    liar.ready_with(authority.as_certificate(misled.hostname))
    textfile = misled.folder / "metrics.prom"
    textfile.mkdir()
    misled.configure(certificate={}, textfile=str(textfile))
    ran = await misled.once_here()
    assert ran.code == 1
    assert ran.complained == (f"cannot write the metrics {textfile}: Is a directory",)
    assert misled.served() != ("", "")


@pytest.mark.parametrize("changed", ["app_id", "url"])
async def test_what_was_answered_for_another_one_is_asked_for_anew(
    misled: Machine, liar: Liar, changed: str
) -> None:
    certificate = ready_with(authority.as_certificate(misled.hostname))
    liar.answers(by_method({CERTIFY: certificate, SYNC: managed(misled.hostname)}))
    record = {"value": ADDRESS, "ttl": 60}
    for _ in range(2):
        misled.configure(record=record, certificate={})
        assert (await misled.once_here()).code == 0
    assert len(liar.methods) == 2
    if changed == "app_id":
        misled.ownership = Ownership(misled.ownership.caller, misled.hostname, "another")
    else:
        misled.url = liar.url.removesuffix("/typedrequest")
    misled.configure(record=record, certificate={})
    assert not misled.status()["record"]["current"]
    assert not misled.status()["certificate"]["current"]
    for _ in range(2):
        assert (await misled.once_here()).code == 0
    assert (len(liar.methods), set(liar.methods[2:])) == (4, {CERTIFY, SYNC})
    assert misled.status()["current"]


async def test_dates_and_waits_beyond_all_reason_do_not_end_the_agent_s_work(
    misled: Machine, liar: Liar
) -> None:
    certificate = authority.as_certificate(misled.hostname)
    liar.ready_with({**certificate.to_wire(), "renewAfter": YEAR_9999_MS})
    misled.configure_certificate()
    assert (await misled.once_here()).code == 0
    assert misled.status()["certificate"]["renewAfter"] == certificate.valid_until
    misled.forget()
    liar.answers(response({"status": "pending", "retryAfterMs": YEAR_9999_MS}))
    assert (await misled.once_here()).code == 3
    assert misled.remembered()["next_ask_ms"] < certificate.valid_until


async def test_sentence_without_end_is_cut(misled: Machine, liar: Liar) -> None:
    liar.answers(failure("hostname-forbidden", text="No.\n" * 50_000))
    misled.configure(record={"value": ADDRESS})
    assert len((await misled.once_here()).complaint) < 1_000
    assert len(misled.remembered()["record_fault"]) < 1_000


async def test_call_that_hangs_beyond_the_timeout_is_not_yet(misled: Machine, liar: Liar) -> None:
    liar.answers(HANG)
    misled.configure(record={"value": ADDRESS})
    ran = await misled.once_here(timeout_seconds=0.5)
    assert ran.code == 3
    assert "no answer within" in ran.complaint


async def test_source_that_hangs_is_not_yet(misled: Machine) -> None:
    misled.configure(record={"command": ["sleep", "600"], "command_timeout_seconds": 1})
    ran = await misled.once_here(timeout_seconds=0.2)
    assert ran.code == 3
    assert "did not end within 1 s" in ran.complaint


async def test_wait_that_was_told_is_kept_by_the_next_runs(misled: Machine, liar: Liar) -> None:
    liar.answers(refused("rate-limited", 6 * HOUR_MS))
    misled.configure_certificate()
    for _ in range(3):
        ran = await misled.once_here()
        assert ran.code == 3
        assert "rate-limited: Not now." in ran.complaint
    assert len(liar.methods) == 1
    await misled.once_here(MovedClock(6 * HOUR_MS).clocks)
    assert len(liar.methods) == 2


async def test_issuance_under_way_is_remembered_and_not_asked_for_too_soon(
    misled: Machine, liar: Liar
) -> None:
    liar.answers(response({"status": "pending", "retryAfterMs": HOUR_MS}))
    misled.configure_certificate()
    for _ in range(2):
        ran = await misled.once_here()
        assert (ran.code, len(liar.methods)) == (3, 1)
        assert "the gateway obtains a certificate" in ran.complaint
    assert "the gateway obtains a certificate" in misled.remembered()["certificate_awaits"]


async def test_wait_beyond_reason_is_not_kept_after_the_clock_was_set_back(
    misled: Machine, liar: Liar
) -> None:
    liar.answers(refused("rate-limited", HOUR_MS))
    misled.configure_certificate()
    await misled.once_here(MovedClock(7 * 24 * HOUR_MS).clocks)
    await misled.once_here()
    assert len(liar.methods) == 2


async def test_hook_does_not_wait_for_the_record(misled: Machine, liar: Liar) -> None:
    good = ready_with(authority.as_certificate(misled.hostname))
    unavailable = response(
        {
            "status": "zone-unavailable",
            "hostname": misled.hostname,
            "retryAfterMs": 200,
            "message": "Not now.",
        }
    )
    conflict = response(
        {
            "status": "record-conflict",
            "hostname": misled.hostname,
            "retryAfterMs": None,
            "message": "Deployed.",
        }
    )

    def until_deployed(envelope: Envelope) -> object:
        return (conflict if misled.hooks_run() else unavailable)(envelope)

    liar.answers(
        by_method(
            {"syncGatewayClientDnsRecord": until_deployed, "getGatewayClientCertificate": good}
        )
    )
    misled.configure(
        record={"value": ADDRESS}, certificate={"deploy_hook": f"echo ran >> {misled.hook_log}"}
    )
    ran = await misled.once_here(timeout_seconds=60)
    assert "record-conflict: Deployed." in ran.complaint

"""Whose certificates are not renewed: hostnames that left the patterns, and who may not ask."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.integration.authorities.conftest import AriLab
from tests.integration.authorities.renewing import HOUR_MS
from tests.integration.service.calling import EVERYTHING, PROVISION, Ownership, World, spec
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Rewrite
from tests.lab.process import wait_until


@dataclass(frozen=True)
class Loss:
    """How a client loses what its renewals need, and how it gets that back."""

    name: str
    lose: Callable[[World, str, Ownership], None]
    restore: Callable[[World, str, Ownership], None]


def ensure(world: World, client_id: str, mine: Ownership, **changes: object) -> None:
    policy = spec(client_id, mine.hostname) | changes
    world.admin.call(PROVISION, action="ensure", spec=policy)


def revoke(world: World, client_id: str, mine: Ownership) -> None:
    del mine
    world.admin.call(PROVISION, action="revoke", spec={"clientId": client_id})


def rotate(world: World, client_id: str, mine: Ownership) -> None:
    made = world.admin.call(PROVISION, action="rotate", spec={"clientId": client_id})
    mine.caller.token = made["apiToken"]


LOSSES = [
    Loss(
        "the hostname leaves the patterns",
        lambda world, client_id, mine: ensure(
            world, client_id, mine, hostnamePatterns=["other.example.test"]
        ),
        ensure,
    ),
    Loss(
        "the capability is taken away",
        lambda world, client_id, mine: ensure(
            world,
            client_id,
            mine,
            capabilities=[each for each in EVERYTHING if each != "requestCertificates"],
        ),
        ensure,
    ),
    Loss("the client is revoked", revoke, rotate),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_certificate_is_kept_unrenewed_until_the_policy_allows_it_again(
    ari: AriLab, loss: Loss
) -> None:
    world, (mine, held) = ari.duo.world, ari.issued()
    told = mine.certificate()
    client_id = ari.duo.document(mine.hostname)["holder"]["clientId"]
    loss.lose(world, client_id, mine)
    before_ms = time.time_ns() // 1_000_000
    ari.duo.renew_now(mine.hostname)
    wait_until(lambda: ari.duo.certificate(mine.hostname)["renew_at_ms"] > 1, "it was looked at")
    ari.duo.wait_until_at_rest(mine.hostname)
    after = ari.duo.certificate(mine.hostname)
    assert before_ms < after["renew_at_ms"] <= before_ms + 7 * HOUR_MS
    assert after["serial"] == held["serial"]
    assert len(ari.ca.orders(mine.hostname)) == 1

    loss.restore(world, client_id, mine)
    assert mine.certificate()["chainPem"] == told["chainPem"]
    ari.duo.renew_now(mine.hostname)
    ari.duo.wait_until_renewed(mine, held["serial"])
    assert mine.certificate()["chainPem"] != told["chainPem"]
    assert len(ari.ca.orders(mine.hostname)) == 2


def test_expired_certificate_of_whom_may_not_renew_it_is_asked_about_no_more(ari: AriLab) -> None:
    world, (mine, _) = ari.duo.world, ari.issued()
    expired = mine.certificate()
    client_id = ari.duo.document(mine.hostname)["holder"]["clientId"]
    revoke(world, client_id, mine)
    ari.duo.change_certificate(
        mine.hostname,
        lambda held: {**held, "valid_until_ms": 1, "renew_at_ms": 1, "ask_at_ms": 1},
    )
    ari.duo.wait_until_looked_at(mine.hostname)
    assert ari.duo.certificate(mine.hostname)["renew_at_ms"] > 1
    assert len(ari.ca.questions(mine.hostname)) == 1
    assert len(ari.ca.orders(mine.hostname)) == 1
    # Whoever may ask for it again need not wait for the next look.
    rotate(world, client_id, mine)
    assert mine.get()["status"] == "pending"
    assert mine.certificate()["chainPem"] != expired["chainPem"]
    assert len(ari.ca.orders(mine.hostname)) == 2


def refuse_validation(authorization: dict[str, object]) -> None:
    challenges: list[dict[str, object]] = authorization["challenges"]  # type: ignore[assignment]
    error = {"type": "urn:ietf:params:acme:error:dns", "detail": "no TXT record found"}
    authorization["status"] = "invalid"
    for challenge in challenges:
        challenge["status"] = "invalid"
        challenge["error"] = error


def test_renewal_that_failed_is_not_begun_anew_without_the_policy(ari: AriLab) -> None:
    world, (mine, held) = ari.duo.world, ari.issued()
    client_id = ari.duo.document(mine.hostname)["holder"]["clientId"]
    mood = Rewrite("validation fails", refuse_validation)
    with ari.ca.proxy.on(Operation.AUTHORIZATION, mood, hostname=mine.hostname):
        ari.duo.renew_now(mine.hostname)
        wait_until(lambda: ari.duo.issuance(mine.hostname).get("state") == "failed", "it fails")
    # The one that is there is served all the same, and says when to ask again.
    told = mine.certificate()
    assert told["chainPem"] == held["chain_pem"]
    assert ari.held_up(mine) == ["issuance-failed"]
    revoke(world, client_id, mine)
    ari.duo.hurry(mine.hostname)
    wait_until(lambda: ari.duo.issuance(mine.hostname)["due_at_ms"] > 1, "it was looked at")
    assert ari.duo.issuance(mine.hostname)["state"] == "failed"
    assert len(ari.ca.orders(mine.hostname)) == 2
    rotate(world, client_id, mine)
    assert mine.certificate() == told
    ari.duo.hurry(mine.hostname)
    ari.duo.wait_until_renewed(mine, held["serial"])
    assert len(ari.ca.orders(mine.hostname)) == 3


def test_certificate_whose_renewal_fails_is_served_until_it_expires_and_not_after(
    ari: AriLab,
) -> None:
    mine, held = ari.issued()
    mood = Rewrite("validation fails", refuse_validation)
    with ari.ca.proxy.on(Operation.AUTHORIZATION, mood, hostname=mine.hostname, times=None):
        ari.duo.renew_now(mine.hostname)
        for failures in (1, 2):
            wait_until(
                lambda count=failures: ari.duo.issuance(mine.hostname).get("failures") == count,
                f"it fails for the {failures}. time",
            )
            assert mine.certificate()["chainPem"] == held["chain_pem"]
            ari.duo.hurry(mine.hostname)
        wait_until(lambda: ari.duo.issuance(mine.hostname)["failures"] == 3, "it fails again")
        ari.duo.expire(mine.hostname)
        answer = mine.get()
        assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
        assert "no TXT record found" in answer["message"]
        # The third failure in a row: about four minutes.
        assert 2 * 60_000 < answer["retryAfterMs"] <= 5 * 60_000
    ari.duo.hurry(mine.hostname)
    wait_until(lambda: mine.get()["status"] == "ready", "it is renewed at last")
    assert mine.certificate()["chainPem"] != held["chain_pem"]

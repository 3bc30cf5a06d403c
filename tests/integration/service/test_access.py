"""Who may call what: provisioning, tokens, roles, capabilities, and the order of judgement."""

import secrets
from typing import Any

import pytest

from tests.integration.service.calling import (
    CAPABILITIES,
    CONTEXT,
    EVERYTHING,
    GET,
    PROVISION,
    RELEASE,
    SYNC,
    Caller,
    Ownership,
    World,
    spec,
)

UNAUTHORIZED = {"code": "unauthorized"}
RECORD = {"type": "A", "value": "198.51.100.5"}


def fresh_id() -> str:
    return f"client-{secrets.token_hex(6)}"


def ensure(world: World, client_id: str, **changes: object) -> dict[str, Any]:
    wanted = spec(client_id, "*.example.test", **changes)
    return world.admin.call(PROVISION, action="ensure", spec=wanted)


def test_ensure_makes_a_client_and_shows_its_token_once(world: World) -> None:
    client_id = fresh_id()
    first, second = ensure(world, client_id), ensure(world, client_id)
    assert first["apiToken"].startswith(f"gwc_{first['credential']['credentialId']}_")
    assert second["apiToken"] is None
    assert second["credential"] == first["credential"]
    assert first["client"] == second["client"]
    assert first["client"]["policyGeneration"] == 1


def test_ensure_with_another_policy_is_in_force_on_every_process(
    world: World, second_url: str
) -> None:
    client_id = fresh_id()
    caller = Caller(world.url, ensure(world, client_id)["apiToken"])
    changed = ensure(world, client_id, capabilities=["syncDnsRecords"])
    assert changed["client"]["policyGeneration"] == 2
    for url in (world.url, second_url):
        context = caller.at(url).call(CONTEXT)["context"]
        assert context["capabilities"] == ["syncDnsRecords"]
        assert context["policyGeneration"] == 2


def test_context_states_the_live_policy(world: World) -> None:
    client_id = fresh_id()
    made = ensure(world, client_id)
    context = Caller(world.url, made["apiToken"]).call(CONTEXT)["context"]
    assert context == {
        "role": "gatewayClient",
        "credentialId": made["credential"]["credentialId"],
        "clientId": client_id,
        "clientType": "cloudly",
        "policyGeneration": 1,
        "hostnamePatterns": ["*.example.test"],
        "allowedDnsRecordAddresses": ["198.51.100.0/24", "2001:db8::/32"],
        "capabilities": list(EVERYTHING),
    }
    assert world.admin.call(CONTEXT) == {"context": {"role": "admin"}}


def test_capabilities_tell_what_is_configured(world: World) -> None:
    expected = {"dns": {"clientRecords": True}, "certificates": {"exactIssuance": True}}
    for caller in (world.admin, world.client()):
        assert caller.call(CAPABILITIES) == {"capabilities": expected}


def test_rotate_without_overlap_ends_the_old_token_on_every_process(
    world: World, second_url: str
) -> None:
    client_id = fresh_id()
    old = Caller(world.url, ensure(world, client_id)["apiToken"])
    made = world.admin.call(PROVISION, action="rotate", spec={"clientId": client_id})
    for url in (world.url, second_url):
        assert old.at(url).refused(CONTEXT) == UNAUTHORIZED
        assert Caller(url, made["apiToken"]).call(CONTEXT)
    assert made["client"]["policyGeneration"] == 2


def test_rotate_with_overlap_keeps_the_old_token_for_now(world: World) -> None:
    client_id = fresh_id()
    old = Caller(world.url, ensure(world, client_id)["apiToken"])
    made = world.admin.call(
        PROVISION, action="rotate", spec={"clientId": client_id}, overlapSeconds=3600
    )
    assert old.call(CONTEXT)["context"]["policyGeneration"] == 2
    assert Caller(world.url, made["apiToken"]).call(CONTEXT)


def test_revoke_ends_every_token_at_once_on_every_process(world: World, second_url: str) -> None:
    client_id = fresh_id()
    first = ensure(world, client_id)["apiToken"]
    second = world.admin.call(
        PROVISION, action="rotate", spec={"clientId": client_id}, overlapSeconds=3600
    )["apiToken"]
    answer = world.admin.call(PROVISION, action="revoke", spec={"clientId": client_id})
    assert answer["credential"] is None
    assert answer["apiToken"] is None
    for token in (first, second):
        for url in (world.url, second_url):
            assert Caller(url, token).refused(CONTEXT) == UNAUTHORIZED


def test_remove_is_refused_while_something_is_held(world: World) -> None:
    client_id = fresh_id()
    caller = Caller(world.url, ensure(world, client_id)["apiToken"])
    held = Ownership(caller, f"t{secrets.token_hex(4)}.example.test")
    held.publish("198.51.100.5")
    refusal = world.admin.refused(PROVISION, action="remove", spec={"clientId": client_id})
    assert refusal["code"] == "request-invalid"
    assert held.hostname in refusal["violations"][0]
    assert caller.call(CONTEXT)
    held.withdraw()
    world.admin.call(PROVISION, action="remove", spec={"clientId": client_id})
    assert caller.refused(CONTEXT) == UNAUTHORIZED


def test_remove_with_release_holdings_frees_records_and_certificates(
    world: World,
) -> None:
    client_id = fresh_id()
    caller = Caller(world.url, ensure(world, client_id)["apiToken"])
    label = secrets.token_hex(4)
    record = Ownership(caller, f"r{label}.example.test")
    record.publish("198.51.100.5")
    certified = Ownership(caller, f"c{label}.example.test", "other-app")
    certified.certificate()
    world.admin.call(PROVISION, action="remove", spec={"clientId": client_id}, releaseHoldings=True)
    assert caller.refused(CONTEXT) == UNAUTHORIZED
    assert world.rival(record).publish("198.51.100.6")["status"] == "managed-created"
    assert world.rival(certified).publish("198.51.100.6")["status"] == "managed-created"


@pytest.mark.parametrize("action", ["rotate", "revoke", "remove"])
def test_unknown_client_is_an_invalid_request(world: World, action: str) -> None:
    refusal = world.admin.refused(PROVISION, action=action, spec={"clientId": "nobody"})
    assert refusal["code"] == "request-invalid"
    assert "nobody" in refusal["violations"][0]


def test_client_made_again_after_removal_starts_anew(world: World) -> None:
    client_id = fresh_id()
    old = Caller(world.url, ensure(world, client_id)["apiToken"])
    world.admin.call(PROVISION, action="remove", spec={"clientId": client_id})
    made = ensure(world, client_id)
    assert made["client"]["policyGeneration"] == 1
    assert old.refused(CONTEXT) == UNAUTHORIZED


def bad_tokens(good: str) -> list[object]:
    credential, secret = good[4:40], good[41:]
    other = "A" if secret[0] != "A" else "B"
    return [
        None,
        5,
        "",
        "gwc_",
        "gwa_" + "A" * 43,
        f"gwc_{credential}_{other}{secret[1:]}",
        f"gwc_{credential[:-1]}{'0' if credential[-1] != '0' else '1'}_{secret}",
        f"gwc_{'0' * 36}_{secret}",
        good + "A",
        good.upper(),
        ["gwc_"],
        {"token": good},
        "gwc_\u00e9",
    ]


def test_every_bad_token_gets_one_and_the_same_answer(world: World) -> None:
    good = world.client("a.example.test").token or ""
    missing = Caller(world.url, None)
    answers = [missing.answer(CONTEXT, apiToken=token) for token in bad_tokens(good)]
    assert answers[0]["error"]["data"] == UNAUTHORIZED
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("method", [SYNC, GET, RELEASE])
def test_admin_may_not_act_as_a_client(world: World, method: str) -> None:
    assert world.admin.refused(method)["code"] == "forbidden"


def test_client_may_not_provision(world: World) -> None:
    assert world.client().refused(PROVISION)["code"] == "forbidden"


@pytest.mark.parametrize(
    ("method", "granted", "missing"),
    [
        (SYNC, ["requestCertificates", "readCertificates"], "syncDnsRecords"),
        (GET, ["syncDnsRecords", "readCertificates"], "requestCertificates"),
        (GET, ["syncDnsRecords", "requestCertificates"], "readCertificates"),
        (RELEASE, ["syncDnsRecords", "readCertificates"], "requestCertificates"),
    ],
)
def test_missing_capability_is_named(
    world: World, method: str, granted: list[str], missing: str
) -> None:
    client = world.client("a.example.test", capabilities=granted)
    refusal = client.refused(method, ownership={"appId": "a", "hostname": "a.example.test"})
    assert refusal == {"code": "forbidden", "capability": missing}


def test_token_is_judged_before_the_schema(world: World) -> None:
    assert Caller(world.url, None).refused(SYNC, nonsense=1) == UNAUTHORIZED


def test_method_is_judged_before_the_token(world: World) -> None:
    body = Caller(world.url, None).answer("noSuchMethod")
    assert body["error"]["data"] == {"code": "method-unknown"}
    expected = "There is no available method for this call on the server side"
    assert body["error"]["text"] == expected


def test_capability_is_judged_before_the_schema(world: World) -> None:
    client = world.client(capabilities=[])
    assert client.refused(SYNC, nonsense=1)["code"] == "forbidden"


def test_schema_is_judged_before_the_pattern(world: World) -> None:
    client = world.client("a.example.test")
    foreign = {"appId": "", "hostname": "b.example.test"}
    refusal = client.refused(SYNC, ownership=foreign, record=RECORD)
    assert refusal["code"] == "request-invalid"


def test_pattern_is_judged_before_allowance_and_hold(world: World, mine: Ownership) -> None:
    mine.publish("198.51.100.5")
    stranger = world.client("elsewhere.example.test")
    for record in (RECORD, {"type": "A", "value": "192.0.2.1"}):
        refusal = stranger.refused(SYNC, ownership=mine.wire, record=record)
        assert refusal["code"] == "hostname-forbidden"


def test_allowance_is_judged_before_hold(world: World, mine: Ownership) -> None:
    mine.publish("198.51.100.5")
    assert world.rival(mine).publish("192.0.2.1")["status"] == "target-invalid"

"""Provisioning, roles, capabilities and the order in which a call is judged."""

import secrets
import threading

import redis

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import (
    ALL_CAPABILITIES,
    APP,
    OTHER_APP,
    V4,
    Client,
    Line,
    Operator,
)
from tests.integration.service.conftest import NewClient
from tests.lab.lab import Lab

UNKNOWN_TOKEN = f"gwc_{'0' * 36}_{'A' * 43}"
VALID_OWNERSHIP = {"appId": APP, "hostname": "relay.nobody.example.test"}


# Provisioning.


def test_ensure_creates_the_client_with_a_first_credential(
    operator: Operator, fresh_label: str
) -> None:
    client = Client(operator, f"a-{fresh_label}", fresh_label)
    answer = client.ensure().response
    assert answer["client"] == {**client.spec(), "policyGeneration": 1}
    assert answer["credential"]["credentialId"] in answer["apiToken"]
    assert answer["credential"]["expiresAt"] is None
    assert answer["apiToken"].startswith("gwc_")
    assert client.remove().response["credential"] is None


def test_ensure_changes_nothing_when_repeated(client: Client) -> None:
    again = client.ensure().response
    assert again["client"]["policyGeneration"] == 1
    assert again["apiToken"] is None
    assert again["credential"]["credentialId"] == client.credential_id


def test_ensure_sets_the_whole_policy_and_counts_it(client: Client) -> None:
    spec = client.spec(clientType="relay", capabilities=[])
    del spec["allowedDnsRecordAddresses"]
    changed = client.operator.provision("ensure", spec).response
    assert changed["client"] == {
        **spec,
        "allowedDnsRecordAddresses": [],
        "policyGeneration": 2,
    }
    assert changed["apiToken"] is None
    assert client.context().response["context"]["policyGeneration"] == 2


def test_a_token_is_shown_only_when_it_is_made(client: Client) -> None:
    later = [client.ensure(), client.ensure(clientType="relay"), client.context(), client.revoke()]
    assert all(client.token not in str(answer.body) for answer in later)
    assert client.rotate().response["apiToken"] == client.token


def test_rotate_ends_the_old_credential_at_once_without_overlap(client: Client) -> None:
    old_token, old_id = client.token, client.credential_id
    answer = client.rotate().response
    assert answer["client"]["policyGeneration"] == 2
    assert answer["credential"]["credentialId"] not in old_id
    assert client.context().response["context"]["credentialId"] == client.credential_id
    client.token = old_token
    assert client.context(at=1).code == "unauthorized"


def test_rotate_keeps_the_old_credential_for_the_overlap(client: Client) -> None:
    old_token, old_id = client.token, client.credential_id
    client.rotate(overlapSeconds=3600)
    assert client.context().response["context"]["credentialId"] == client.credential_id
    client.token = old_token
    assert client.context(at=1).response["context"]["credentialId"] == old_id


def test_an_overlap_ends_by_itself(client: Client) -> None:
    from tests.integration.service.calling import eventually

    old_token = client.token
    client.rotate(overlapSeconds=1)
    client.token = old_token

    def is_refused() -> bool:
        return "error" in client.context().body

    eventually(is_refused, "the old credential expires")
    assert client.context().code == "unauthorized"


def test_an_overlap_is_not_prolonged_by_the_next_rotation(client: Client) -> None:
    first_token = client.token
    client.rotate(overlapSeconds=3600)
    second_token = client.token
    client.rotate()
    for token in (first_token, second_token):
        client.token = token
        assert client.context().code == "unauthorized"


def test_revoke_is_in_force_at_once_on_every_process(client: Client) -> None:
    client.rotate(overlapSeconds=3600)
    assert all(client.context(at=at).response for at in (0, 1))
    answer = client.revoke(at=1).response
    assert (answer["credential"], answer["apiToken"]) == (None, None)
    assert answer["client"]["policyGeneration"] == 3
    assert [client.context(at=at).code for at in (0, 1)] == ["unauthorized"] * 2


def test_revoke_changes_nothing_when_repeated(client: Client) -> None:
    generations = [client.revoke().response["client"]["policyGeneration"] for _ in range(2)]
    assert generations == [2, 2]


def test_ensure_gives_a_revoked_client_no_new_credential(client: Client) -> None:
    client.revoke()
    again = client.ensure().response
    assert (again["credential"], again["apiToken"]) == (None, None)
    assert client.rotate().response["apiToken"]
    assert client.context().response


def test_a_policy_change_is_in_force_at_once_on_every_process(client: Client) -> None:
    assert client.sync(V4, at=1).status == "managed-created"
    client.ensure(capabilities=["readCertificates"])
    refused = client.sync(V4, at=1)
    assert refused.error["data"] == {"code": "forbidden", "capability": "syncDnsRecords"}
    client.ensure(hostnamePatterns=[])
    assert client.sync(V4, at=1).code == "hostname-forbidden"


def test_an_unknown_client_is_refused_by_every_action_but_ensure(
    operator: Operator, fresh_label: str
) -> None:
    spec = {"clientId": f"nobody-{fresh_label}"}
    for action in ("rotate", "revoke", "remove"):
        assert operator.provision(action, spec).code == "request-invalid"


def test_remove_is_refused_while_a_record_is_held(client: Client, hand: Hand) -> None:
    client.sync(V4)
    assert client.remove().code == "request-invalid"
    assert client.sync(V4).status == "managed-unchanged"
    assert client.withdraw().status == "managed-deleted"
    assert client.remove().response["client"]["clientId"] == client.client_id
    assert client.context().code == "unauthorized"


def test_remove_is_refused_while_a_certificate_is_held(client: Client) -> None:
    client.certificate_ready()
    assert client.remove().code == "request-invalid"
    assert client.release().status == "released"
    assert client.remove().response


def test_remove_withdraws_and_releases_everything_when_told(
    client: Client, other_client: Client, hand: Hand
) -> None:
    client.sync(V4)
    client.sync(V4, client.host("second"), app_id=OTHER_APP)
    client.certificate_ready(client.host("third"))
    removed = client.remove(releaseHoldings=True).response
    assert (removed["credential"], removed["apiToken"]) == (None, None)
    names = [client.hostname, client.host("second"), client.host("third")]
    assert all(hand.records(name) == set() for name in names)
    assert all(other_client.sync(V4, name).status == "managed-created" for name in names)


def test_a_removed_client_can_be_made_again(client: Client) -> None:
    old_token = client.token
    client.remove()
    assert client.ensure().response["client"]["policyGeneration"] == 1
    assert client.context().response
    client.token = old_token
    assert client.context().code == "unauthorized"


def test_rotate_and_remove_change_no_policy_by_a_spec_that_rides_along(client: Client) -> None:
    spec = client.spec(clientType="other", hostnamePatterns=[], capabilities=[])
    rotated = client.operator.provision("rotate", spec).response
    assert rotated["client"] == {**client.spec(), "policyGeneration": 2}


def test_concurrent_rotations_all_give_working_credentials(client: Client) -> None:
    from tests.integration.service.calling import at_once

    answers = at_once([lambda: client.operator.provision(
        "rotate", {"clientId": client.client_id}, overlapSeconds=60)] * 6)
    tokens = {answer.response["apiToken"] for answer in answers}
    assert len(tokens) == 6
    for token in tokens:
        client.token = token
        assert client.context().response
    assert client.context().response["context"]["policyGeneration"] == 7


# Roles, capabilities, context.


def test_the_context_of_a_client_is_its_live_policy(client: Client) -> None:
    assert client.context().response["context"] == {
        "role": "gatewayClient",
        "credentialId": client.credential_id,
        **client.spec(),
        "policyGeneration": 1,
    }


def test_the_context_of_an_operator_is_its_role(operator: Operator, line: Line) -> None:
    answer = line.call("getGatewayClientContext", {"apiToken": operator.token})
    assert answer.response == {"context": {"role": "admin"}}


def test_every_credential_reads_the_capabilities(client: Client, operator: Operator) -> None:
    for token in (client.token, operator.token):
        answer = client.line.call("getGatewayCapabilities", {"apiToken": token})
        assert answer.response == {
            "capabilities": {
                "dns": {"clientRecords": True},
                "certificates": {"exactIssuance": True},
            }
        }


def test_client_methods_are_not_for_the_operator(operator: Operator, line: Line) -> None:
    for method in (
        "syncGatewayClientDnsRecord",
        "getGatewayClientCertificate",
        "releaseGatewayClientCertificate",
    ):
        answer = line.call(method, {"apiToken": operator.token, "ownership": VALID_OWNERSHIP})
        assert answer.error["data"] == {"code": "forbidden", "capability": None}


def test_provisioning_is_not_for_clients(client: Client) -> None:
    answer = client.call("provisionGatewayClientCredential", action="ensure", spec=client.spec())
    assert answer.error["data"] == {"code": "forbidden", "capability": None}


def test_a_missing_capability_is_named(new_client: NewClient) -> None:
    for number, missing in enumerate(ALL_CAPABILITIES):
        held = [name for name in ALL_CAPABILITIES if name != missing]
        client = new_client(f"c{number}", capabilities=held)
        refused = {
            "readCertificates": [client.certificate()],
            "requestCertificates": [client.certificate(), client.release()],
            "syncDnsRecords": [client.sync(V4), client.withdraw()],
        }[missing]
        for answer in refused:
            assert answer.error["data"] == {"code": "forbidden", "capability": missing}


# The order of judgement: what is asked first answers first.


def test_an_unknown_method_is_said_before_the_token_is_looked_at(line: Line) -> None:
    answer = line.call("##VirtualStream##", {})
    assert answer.code == "method-unknown"
    assert answer.error["text"] == (
        "There is no available method for this call on the server side"
    )


def test_a_bad_token_is_said_before_anything_of_the_schema(line: Line) -> None:
    for request in ({}, {"ownership": 1}, {"identity": {}, "record": []}):
        answer = line.call("syncGatewayClientDnsRecord", {"apiToken": UNKNOWN_TOKEN, **request})
        assert answer.error["data"] == {"code": "unauthorized"}


def test_a_wrong_role_is_said_before_anything_of_the_schema(
    client: Client, operator: Operator
) -> None:
    assert client.call("provisionGatewayClientCredential", action=1).code == "forbidden"
    answer = client.line.call("syncGatewayClientDnsRecord", {"apiToken": operator.token, "x": 1})
    assert answer.code == "forbidden"


def test_a_missing_capability_is_said_before_anything_of_the_schema(new_client: NewClient) -> None:
    client = new_client(capabilities=[])
    assert client.call("syncGatewayClientDnsRecord", ownership=1).code == "forbidden"


def test_the_schema_is_judged_before_the_pattern(client: Client) -> None:
    bad_record = {"type": "A", "value": "198.51.100.10", "ttl": 1}
    assert client.sync(bad_record, "relay.foreign.example.test").code == "request-invalid"


def test_the_pattern_is_judged_before_the_allowance(client: Client) -> None:
    outside = {"type": "A", "value": "192.0.2.1"}
    answer = client.sync(outside, "relay.foreign.example.test")
    assert answer.error["data"] == {"code": "hostname-forbidden"}


def test_the_pattern_is_judged_before_the_hold(client: Client, new_client: NewClient) -> None:
    client.sync(V4)
    stranger = new_client("stranger", hostnamePatterns=["*.elsewhere.example.test"])
    free, held = client.host("free"), client.hostname
    for call in (
        lambda name: stranger.sync(V4, name),
        stranger.withdraw,
        stranger.certificate,
        stranger.release,
    ):
        answers = [call(name).body for name in (free, held)]
        told = [str(answer).replace(name, "") for answer, name in zip(answers, (free, held))]
        assert told[0] == told[1]
        assert answers[0]["error"]["data"]["code"] == "hostname-forbidden"


def test_the_allowance_is_judged_before_the_hold(
    client: Client, other_client: Client, hand: Hand
) -> None:
    client.sync(V4)
    outside = {"type": "A", "value": "192.0.2.1"}
    answer = other_client.sync(outside).response
    assert (answer["status"], answer["conflictingRecords"]) == ("target-invalid", [])


# Bad tokens.


def bad_tokens(client: Client, operator: Operator) -> list[object]:
    """Every kind there is: absent, odd, malformed, of nobody, of somebody with a wrong secret."""
    secret = secrets.token_urlsafe(32)
    return [
        None,
        "",
        1,
        True,
        [client.token],
        {"apiToken": client.token},
        client.token[:-1],
        f"{client.token} ",
        client.token.replace("gwc_", "gwa_"),
        "\u00fc" * 40,
        UNKNOWN_TOKEN,
        f"gwa_{secret}",
        operator.token[:-1] + ("A" if operator.token[-1] != "A" else "B"),
        f"gwc_{client.credential_id}_{secret}",
        f"gwc_{client.credential_id[:24]}{'0' * 12}_{secret}",
        "x" * 60_000,
    ]


def test_every_bad_token_is_answered_alike(client: Client, operator: Operator) -> None:
    absent = client.line.call("getGatewayClientContext", {})
    assert absent.error == {
        "text": "The call needs a valid apiToken.",
        "data": {"code": "unauthorized"},
    }
    for token in bad_tokens(client, operator):
        answer = client.line.call("getGatewayClientContext", {"apiToken": token})
        assert answer.body == absent.body
        assert answer.headers["content-length"] == absent.headers["content-length"]


def test_every_bad_token_costs_the_same_work(
    client: Client, operator: Operator, lab: Lab
) -> None:
    """One read of Redis each, told by Redis itself."""
    tokens = bad_tokens(client, operator)
    with redis.Redis.from_url(lab.redis.url, decode_responses=True) as server:
        with server.monitor() as monitor:
            for token in tokens:
                client.line.call("getGatewayClientContext", {"apiToken": token})
            server.ping()
            commands = []
            while (seen := monitor.next_command()["command"]) != "PING":
                commands.append(seen)
    reads = [command for command in commands if ":client" in command]
    assert len(reads) == len(tokens)
    assert all(command.startswith("HGETALL gw:{c") for command in reads)


def test_a_token_is_checked_at_every_call_under_load(client: Client) -> None:
    """Nothing is cached: calls that began after the revocation was answered are all refused."""
    revoked = threading.Event()
    late: list[str] = []

    def ask(at: int) -> None:
        for _ in range(200):
            began_after = revoked.is_set()
            answer = client.context(at=at)
            if began_after:
                late.append(answer.body.get("error", {}).get("data", {}).get("code", "admitted"))
                return

    threads = [threading.Thread(target=ask, args=(number % 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    client.revoke()
    revoked.set()
    for thread in threads:
        thread.join()
    assert late == ["unauthorized"] * 4

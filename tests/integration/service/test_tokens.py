"""Tokens: refusing costs the same whatever is wrong, and no process remembers one."""

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor

import redis

from tests.integration.service.calling import CONTEXT, PROVISION, Caller, World, spec
from tests.lab.lab import Lab
from tests.lab.process import wait_until


def made(world: World, client_id: str) -> Caller:
    """A new client of this name."""
    answer = world.admin.call(PROVISION, action="ensure", spec=spec(client_id))
    return Caller(world.url, answer["apiToken"])


def rotated(world: World, client_id: str, overlap_seconds: int) -> Caller:
    answer = world.admin.call(
        PROVISION, action="rotate", spec={"clientId": client_id}, overlapSeconds=overlap_seconds
    )
    return Caller(world.url, answer["apiToken"])


def fresh_id() -> str:
    return f"client-{secrets.token_hex(6)}"


def test_every_bad_token_costs_one_read_of_redis(service_lab: Lab, world: World) -> None:
    good = world.client().token or ""
    credential_id, secret = good[4:40], secrets.token_urlsafe(32)
    tokens: list[object] = [
        None,
        7,
        [good],
        "",
        "x" * 60_000,
        good[:-1],
        f"gwa_{secret}",
        f"gwc_{credential_id}_{secret}",
        f"gwc_{credential_id[:24]}{'0' * 12}_{secret}",
        f"gwc_{'0' * 36}_{secret}",
    ]
    nobody = Caller(world.url, None)
    with (
        redis.Redis.from_url(service_lab.redis.url, decode_responses=True) as connection,
        connection.monitor() as monitor,
    ):
        for token in tokens:
            nobody.refused(CONTEXT, apiToken=token)
        connection.echo("the end")
        commands = []
        while not (seen := monitor.next_command()["command"]).endswith("the end"):
            commands.append(seen)
    reads = [command for command in commands if ":client" in command]
    assert [command.split()[0] for command in reads] == ["HGETALL"] * len(tokens)


def test_overlap_ends_by_itself(world: World) -> None:
    client_id = fresh_id()
    old = made(world, client_id)
    new = rotated(world, client_id, overlap_seconds=1)
    wait_until(lambda: "error" in old.answer(CONTEXT), "the old token expires")
    assert old.refused(CONTEXT) == {"code": "unauthorized"}
    assert new.call(CONTEXT)


def test_later_rotation_shortens_an_overlap_and_never_prolongs_it(world: World) -> None:
    client_id = fresh_id()
    old = [made(world, client_id), rotated(world, client_id, overlap_seconds=3600)]
    newest = rotated(world, client_id, overlap_seconds=0)
    assert [each.refused(CONTEXT)["code"] for each in old] == ["unauthorized"] * 2
    assert newest.call(CONTEXT)


def test_rotations_at_once_all_give_tokens_that_work(world: World) -> None:
    client_id = fresh_id()
    made(world, client_id)
    with ThreadPoolExecutor(6) as pool:
        callers = list(pool.map(lambda _: rotated(world, client_id, 3600), range(6)))
    assert len({caller.token for caller in callers}) == 6
    generations = {caller.call(CONTEXT)["context"]["policyGeneration"] for caller in callers}
    assert generations == {7}


def test_no_call_that_begins_after_a_revocation_is_admitted(world: World, second_url: str) -> None:
    client_id = fresh_id()
    caller = made(world, client_id)
    has_revoked = threading.Event()

    def ask(number: int) -> bool:
        """Ask until a call was begun after the revocation; whether that one was refused."""
        here = caller.at(second_url) if number % 2 else caller
        for _ in range(1000):
            is_late = has_revoked.is_set()
            answer = here.answer(CONTEXT)
            if is_late:
                return "error" in answer
        return False

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, number) for number in range(4)]
        world.admin.call(PROVISION, action="revoke", spec={"clientId": client_id})
        has_revoked.set()
        assert all(future.result() for future in asking)


def test_hostname_that_is_not_the_callers_tells_nothing_of_who_holds_it(world: World) -> None:
    held = world.ownership()
    held.publish("198.51.100.5")
    stranger = world.client("elsewhere.example.test")
    free = f"t{secrets.token_hex(6)}.example.test"
    for method in ("getGatewayClientCertificate", "releaseGatewayClientCertificate"):
        told = [
            stranger.answer(method, ownership={"appId": "a", "hostname": name})["error"]
            for name in (held.hostname, free)
        ]
        assert told[0]["data"] == told[1]["data"] == {"code": "hostname-forbidden"}
        assert told[0]["text"].replace(held.hostname, free) == told[1]["text"]

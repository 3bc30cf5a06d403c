"""`records` and `certificates`: no more are taken, in whichever process; what is held goes on."""

import secrets
from concurrent.futures import ThreadPoolExecutor

from tests.integration.limits.test_rates import made
from tests.integration.service.calling import GET, SYNC, Caller, Ownership, World

ZONE = "example.test"
ADDRESS = "198.51.100.20"
HOUR_MS = 3_600_000
ROUNDS = 30
"""More than are ever needed: in each one at least one call counts none before it."""


def hostnames(number: int) -> list[str]:
    return [f"t{secrets.token_hex(6)}.{ZONE}" for _ in range(number)]


def synced(caller: Caller, hostname: str, value: str = ADDRESS) -> str | int:
    """The status of a sync, or for how long it is to wait."""
    answer = caller.answer(
        SYNC,
        ownership={"appId": "relay", "hostname": hostname},
        record={"type": "A", "value": value},
    )
    return _status_or_wait(answer)


def asked(caller: Caller, hostname: str) -> str | int:
    """The status of a certificate, or for how long it is to wait."""
    return _status_or_wait(caller.answer(GET, ownership={"appId": "relay", "hostname": hostname}))


def _status_or_wait(answer: dict[str, object]) -> str | int:
    error = answer.get("error")
    if error is None:
        return answer["response"]["status"]  # type: ignore[index,no-any-return]
    assert error["data"]["code"] == "overloaded"  # type: ignore[index]
    return error["data"]["retryAfterMs"]  # type: ignore[index,no-any-return]


def test_calls_at_once_in_two_processes_never_pass_the_quota(
    world: World, urls: tuple[str, str]
) -> None:
    caller = made(world, "three-records", f"*.{ZONE}")
    here_and_there = [caller, caller.at(urls[1])]
    taken: list[str] = []
    left = hostnames(12)
    for _ in range(ROUNDS):
        if len(taken) == 3:
            break
        with ThreadPoolExecutor(len(left)) as threads:
            callers = [here_and_there[number % 2] for number in range(len(left))]
            answers = dict(zip(left, threads.map(synced, callers, left), strict=True))
        taken += [name for name, answer in answers.items() if answer == "managed-created"]
        left = [name for name in left if name not in taken]
        assert len(taken) <= 3
        assert all(isinstance(answers[name], int) for name in left)
    assert len(taken) == 3, taken
    assert {synced(caller, name) for name in left} == {HOUR_MS}
    # What is held goes on, and only giving up makes room: at once.
    assert synced(caller, taken[0]) == "managed-unchanged"
    assert synced(caller, taken[1], "198.51.100.21") == "managed-updated"
    assert Ownership(caller, taken[2]).withdraw()["status"] == "managed-deleted"
    assert synced(caller.at(urls[1]), left[0]) == "managed-created"
    assert synced(caller, taken[2]) == HOUR_MS


def test_refused_hostname_is_left_free_for_others(world: World) -> None:
    caller = made(world, "one-record", f"*.{ZONE}")
    first, second = hostnames(2)
    assert synced(caller, first) == "managed-created"
    assert synced(caller, second) == HOUR_MS
    other = Ownership(world.client(second), second)
    assert other.publish(ADDRESS)["status"] == "managed-created"


def test_certificates_are_counted_by_themselves_until_they_are_released(
    world: World, urls: tuple[str, str]
) -> None:
    caller = made(world, "one-certificate", f"*.{ZONE}")
    first, second = hostnames(2)
    assert synced(caller, first) == synced(caller, second) == "managed-created"
    mine = Ownership(caller, first)
    certificate = mine.certificate()
    # A hostname that is held by its record is refused its certificate all the same.
    assert asked(caller.at(urls[1]), second) == HOUR_MS
    assert mine.certificate() == certificate
    assert mine.release() == "released"
    assert asked(caller.at(urls[1]), second) == "pending"
    assert asked(caller, first) == HOUR_MS
    assert synced(caller, second) == "managed-unchanged"

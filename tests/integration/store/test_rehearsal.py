"""The store for rehearsals: judges and answers as the real one does, and writes nothing."""

import json
import secrets
from collections.abc import AsyncIterator

import pytest
import redis

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.connection import Store, Swap
from gateway.store.documents import Change, Documents, Holder
from gateway.store.rehearsal import RehearsedStore
from tests.lab.redis import RedisProcess

HOLDER = Holder(ClientId("relay"), AppId("app:one"))


@pytest.fixture
async def rehearsed(redis_server: RedisProcess) -> AsyncIterator[RehearsedStore]:
    store = RehearsedStore(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
async def real(redis_server: RedisProcess) -> AsyncIterator[Store]:
    store = Store(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
def hostname(fresh_label: str) -> Hostname:
    return Hostname(f"{fresh_label}.example.test")


def dump(server: RedisProcess) -> dict[bytes, object]:
    with redis.Redis.from_url(server.url) as connection:
        return {key: connection.dump(key) for key in connection.scan_iter()}


async def test_document_reads_as_changed_and_redis_stays_as_it_was(
    redis_server: RedisProcess, real: Store, rehearsed: RehearsedStore, hostname: Hostname
) -> None:
    await Documents(real).change(hostname, lambda _: Change({"holder": HOLDER}))
    before = dump(redis_server)
    documents = Documents(rehearsed)
    record = {"type": "A"}
    await documents.change(hostname, lambda _: Change({"record": record}, 5, touches_due=True))
    changed = await documents.read(hostname)
    assert (changed.holder, changed.record) == (HOLDER, record)
    await documents.change(hostname, lambda _: Change({"record": None}))
    assert (await documents.read(hostname)).record is None
    await documents.change(hostname, lambda _: Change({"holder": None}))
    assert (await documents.read(hostname)).version == ""
    assert dump(redis_server) == before


async def test_rehearsal_that_begins_anew_finds_what_redis_holds(
    rehearsed: RehearsedStore, hostname: Hostname
) -> None:
    documents = Documents(rehearsed)
    await documents.change(hostname, lambda _: Change({"holder": HOLDER}))
    rehearsed.begin_anew()
    assert (await documents.read(hostname)).version == ""


@pytest.mark.parametrize(
    ("there", "expected", "is_taken"),
    [
        (False, "", True),
        (False, "*", False),
        (False, "another", False),
        (True, "", False),
        (True, "*", True),
        (True, "another", False),
        (True, "same", True),
    ],
)
async def test_commit_is_judged_as_the_script_does(
    real: Store, rehearsed: RehearsedStore, there: bool, expected: str, is_taken: bool
) -> None:
    answers = []
    for store in (real, rehearsed):
        key, index = (f"gw:{{{secrets.token_hex(4)}}}:{kind}" for kind in ("document", "index"))
        version = ""
        if there:
            version = (
                await store.commit(key, index, expected_version="", member="", sets={"a": "1"})
                or ""
            )
        answer = await store.commit(
            key,
            index,
            expected_version=version if expected == "same" else expected,
            member="m",
            score="1",
            sets={"b": "2"},
            deletes=["a"],
        )
        fields = await store.fields(key)
        fields.pop("version", None)
        answers.append((answer is not None, json.dumps(fields)))
    assert answers[0] == answers[1]
    assert answers[0][0] is is_taken


async def test_every_other_write_is_taken_and_not_made(
    redis_server: RedisProcess, rehearsed: RehearsedStore
) -> None:
    before, key = dump(redis_server), f"gw:{{{secrets.token_hex(4)}}}:x"
    await rehearsed.add_to_set(key, "m")
    await rehearsed.remove_from_set(key, "m")
    await rehearsed.remove_member(key, "m", up_to_score=1)
    await rehearsed.raise_score(key, "m", 1)
    await rehearsed.set_field(key, "f", "v")
    await rehearsed.set_field_once(key, "f", "v")
    await rehearsed.delete_field(key, "f")
    assert await rehearsed.compare_and_set(key, [Swap(f"{key}:1", "", "v", 1_000)], 0)
    assert dump(redis_server) == before

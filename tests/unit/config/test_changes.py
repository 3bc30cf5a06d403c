"""Which keys a configuration changes, and which of them a running process cannot take."""

import pytest

from gateway.config.changes import changed_keys, keys_needing_restart
from tests.unit.config.conftest import ACME, MINIMAL, ZONE, Load

REDIS = '[redis]\nurl = "redis://127.0.0.1:6379/0"\n'


def test_same_text_changes_nothing(load: Load) -> None:
    text = MINIMAL + ACME + ZONE
    assert changed_keys(load(text), load(text)) == []


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (MINIMAL, MINIMAL + '[log]\nlevel = "debug"\n', ["log.level"]),
        (
            MINIMAL,
            MINIMAL + "[worker]\nenabled = false\nconcurrency = 7\n",
            ["worker.enabled", "worker.concurrency"],
        ),
        (MINIMAL, MINIMAL + ZONE, ["zones"]),
        (MINIMAL + ZONE, MINIMAL + ZONE.replace("192.0.2.53", "192.0.2.54"), ["zones[0].primary"]),
        (MINIMAL + ZONE, MINIMAL + ZONE.replace("c2Vj", "d2Vj"), ["zones[0].tsig.secret"]),
        (MINIMAL, MINIMAL.replace("abab", "cdcd"), ["admin.token_sha256"]),
        (MINIMAL, MINIMAL + REDIS, ["redis.url"]),
    ],
)
def test_each_key_that_differs_is_named(
    load: Load, before: str, after: str, changed: list[str]
) -> None:
    assert changed_keys(load(before), load(after)) == changed


def test_no_value_is_named_since_it_may_be_a_secret(load: Load) -> None:
    before = MINIMAL + REDIS
    after = MINIMAL + REDIS.replace("127.0.0.1", ":hunter2@127.0.0.1")
    found = changed_keys(load(before), load(after))
    assert found == ["redis.url"]


@pytest.mark.parametrize(
    "text",
    [
        REDIS,
        'state_dir = "elsewhere"\n',
        '[http]\nlisten = "127.0.0.1:8054"\n',
        "[http]\nconnections = 7\n",
        '[metrics]\nlisten = "127.0.0.1:9153"\n',
        '[traces]\nendpoint = "http://127.0.0.1:4318"\n',
        "[traces]\nsample = 0.5\n",
    ],
)
def test_shared_redis_and_listeners_need_a_restart(load: Load, text: str) -> None:
    after = load(text + MINIMAL)
    changed = changed_keys(load(MINIMAL), after)
    assert changed
    assert keys_needing_restart(changed) == changed


@pytest.mark.parametrize(
    "text",
    [
        ZONE,
        ACME,
        '[log]\nformat = "json"\n',
        "[worker]\nenabled = false\n",
        '[http]\ntrusted_proxies = ["192.0.2.0/24"]\n',
        "[page]\nenabled = false\n",
        "[redis]\nreplicas = 0\n",
        '[limits.clients."a"]\nrecords = 3\n',
    ],
)
def test_all_else_is_taken_while_it_serves(load: Load, text: str) -> None:
    changed = changed_keys(load(MINIMAL), load(MINIMAL + text))
    assert changed
    assert keys_needing_restart(changed) == []

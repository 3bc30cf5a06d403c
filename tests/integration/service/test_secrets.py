"""Nothing secret is logged, answered or stored in clear, at debug level, in a whole story."""

import base64
import json
import tomllib
from pathlib import Path

import httpx
import pytest
import redis

from tests.integration.service.calling import (
    CONTEXT,
    NO_TLS,
    PROVISION,
    SYNC,
    Caller,
    Ownership,
    World,
)
from tests.lab.lab import Lab, LabOptions, running_lab


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """A story played on a lab of its own: its secrets, and everything that was written."""
    with running_lab(LabOptions(log_level="debug")) as lab:
        world = World(lab.config.url, lab.config.admin_token)
        mine = world.ownership()
        answers = [_play(world, mine)]
        certificate = mine.certificate()
        # In the AOF as text, whatever has been deleted since.
        appended = b"".join(file.read_bytes() for file in sorted(lab.folder.glob("redis/**/*.aof")))
        with redis.Redis.from_url(lab.redis.url) as connection:
            account = [
                connection.hget(key, "sealedKey") for key in connection.scan_iter("gw:account:*")
            ]
        assert appended
        assert account
        mine.release()
        lab.gateways[0].stop()
        logs = "".join(file.read_text() for file in lab.folder.glob("gateway/*.log"))
        return {
            "secrets": _secrets(lab, world, mine, certificate["privateKeyPem"]),
            "logs": logs,
            "answers": "".join(answers),
            "appended": appended.decode("latin-1"),
        }


def _play(world: World, mine: Ownership) -> str:
    """Good calls and bad ones, with tokens in every wrong place; the text of all refusals."""
    mine.publish("198.51.100.5")
    mine.publish("2001:db8::5")
    token = mine.caller.token or ""
    refused = [
        mine.caller.answer(SYNC, ownership={**mine.wire, "appId": token + " "}),
        mine.caller.answer(SYNC, ownership=mine.wire, **{token: 1}),
        mine.caller.answer(SYNC, ownership={"appId": "a", "hostname": token}, delete=True),
        mine.caller.answer(token),
        mine.caller.answer(PROVISION),
        Caller(mine.caller.url, token + "x").answer(CONTEXT),
        world.admin.answer(PROVISION, action="ensure", spec={"clientId": world.admin.token}),
    ]
    # The method is echoed, as the protocol has it; nothing else of a request is.
    texts = [json.dumps({**answer, "method": None}) for answer in refused]
    broken = httpx.post(
        mine.caller.url,
        content=f'{{"method": "m", "{token}": 1, "{token}": 2}}',
        headers={"Content-Type": "application/json"},
        trust_env=False,
        timeout=15,
        verify=NO_TLS,
    )
    return "".join([*texts, broken.text])


def _secrets(lab: Lab, world: World, mine: Ownership, private_key_pem: str) -> dict[str, str]:
    settings = tomllib.loads(Path(lab.config.config_file).read_text())
    tsig = settings["zones"][0]["tsig"]["secret"]
    keyring = Path(settings["keyring_file"]).read_text().split()[1]
    key_lines = private_key_pem.splitlines()[1:-1]
    return {
        "admin token": world.admin.token or "",
        "client token": mine.caller.token or "",
        "client token's secret": (mine.caller.token or "").split("_", 2)[2],
        "TSIG secret": tsig,
        "TSIG secret in hex": base64.b64decode(tsig).hex(),
        "TSIG secret, raw": base64.b64decode(tsig).decode("latin-1"),
        "keyring": keyring,
        "keyring, raw": base64.b64decode(keyring).decode("latin-1"),
        "private key": key_lines[0],
        "private key, raw": base64.b64decode("".join(key_lines)).decode("latin-1"),
        "any private key": "PRIVATE KEY-----",
    }


@pytest.mark.parametrize("place", ["logs", "answers", "appended"])
def test_no_secret_is_written_in_clear(told: dict[str, object], place: str) -> None:
    text, secrets = told[place], told["secrets"]
    assert isinstance(text, str)
    assert isinstance(secrets, dict)
    assert len(text) > 1_000
    assert [name for name, secret in secrets.items() if secret in text] == []


def test_story_was_logged_at_debug_level(told: dict[str, object]) -> None:
    logs = str(told["logs"])
    for expected in ("dns exchange", "call to the CA", "certificate issued"):
        assert expected in logs

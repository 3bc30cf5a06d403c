"""The files of docker-compose.yml fit each other and the gateway; no container engine is needed."""

import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from gateway.certificates.sealing import load_keyring
from gateway.config import load_settings
from tests.integration.deploying.composing import read_compose
from tests.lab.process import find_program

ROOT = Path(__file__).parents[2]
EXAMPLES = Path("docs/examples/compose")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what compose uses, with secrets of its own instead of mounted ones."""
    root = tmp_path_factory.mktemp("compose")
    shutil.copytree(ROOT / EXAMPLES, root / EXAMPLES, ignore=shutil.ignore_patterns("secrets*"))
    (root / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/compose-secrets", root / "scripts")
    make_secrets(root)
    for file in ("gateway.toml", "bind/named.conf"):
        text = (root / EXAMPLES / file).read_text()
        here = text.replace("/run/secrets", str(root / EXAMPLES / "secrets"))
        (root / EXAMPLES / file).write_text(here.replace("/var/lib/bind", str(root)))
    return root


def make_secrets(root: Path) -> str:
    script = root / "scripts/compose-secrets"
    return subprocess.run([script], check=True, capture_output=True, text=True).stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_every_secret_that_compose_names_is_made(tree: Path) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    named = re.findall(r"\{ file: (\S+) \}", text)
    assert len(named) == 7
    assert [file for file in named if not (tree / file).is_file()] == []


def test_secrets_stay_when_they_are_there_already(tree: Path) -> None:
    before = contents(tree / EXAMPLES / "secrets")
    assert "nothing was changed" in make_secrets(tree)
    assert contents(tree / EXAMPLES / "secrets") == before


def test_redis_for_good_keeps_as_much_as_this_one() -> None:
    tried, for_good = (
        read_compose(ROOT / file)["services"]["redis"]
        for file in ("docker-compose.yml", "docs/examples/one/docker-compose.yml")
    )
    assert for_good == tried
    assert "--appendfsync, always" in tried["command"]


def test_gateway_accepts_its_configuration_and_keyring(tree: Path) -> None:
    settings = load_settings(tree / EXAMPLES / "gateway.toml", {})
    assert [zone.name for zone in settings.zones] == ["example.test"]
    assert [acme.name for acme in settings.acme] == ["pebble"]
    assert load_keyring(settings.keyring_file).key_ids == ("compose-1",)


def test_bind_accepts_its_configuration_and_zone(tree: Path) -> None:
    shutil.copy(tree / EXAMPLES / "bind/example.test.zone", tree)
    checker = find_program("named-checkconf", "bind9-utils")
    subprocess.run([checker, "-z", tree / EXAMPLES / "bind/named.conf"], check=True)


def test_pebbles_certificate_is_for_its_service_name(tree: Path) -> None:
    secrets = tree / EXAMPLES / "secrets"
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(secrets / "pebble.pem", secrets / "pebble.key")
    client = ssl.create_default_context(cafile=secrets / "pebble-ca.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname="pebble")
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (asking, answering, asking):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    # Reached only with a certificate that the client found right for that name.
    assert asking.version() == "TLSv1.3"

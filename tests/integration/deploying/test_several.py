"""docs/examples/several: its files fit each other, and real programs take them.

No container engine is needed: Redis, Sentinels, nginx and the gateway's commands run as processes.
"""

import ipaddress
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.certificates.sealing import load_keyring
from gateway.config import load_settings
from tests.integration.deploying.composing import read_compose
from tests.integration.deploying.page import ROOT, SEVERAL, TEXT, blocks
from tests.integration.deploying.redisset import (
    EXAMPLE,
    SUBNET,
    RedisSet,
    address_of,
    copy_example,
    make_secrets,
)
from tests.lab.nginx_process import TEMPORARY_PATHS, nginx_command
from tests.lab.process import find_program, wait_until
from tests.lab.tls import write_server_certificate

COMPOSE = read_compose(EXAMPLE / "docker-compose.yml")
SERVICES = COMPOSE["services"]
GATEWAYS = [name for name in SERVICES if name.startswith("gateway-")]
POLICY = ["--type", "trial", "--pattern", "*.example.com", "--capability", "syncDnsRecords"]
MADE_BY_HAND = {"./nginx", "./backups"}
MAIN = """\
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    {temporary_paths}
    include {folder}/nginx/*.conf;
}}
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_example(tmp_path_factory.mktemp("several"))


@pytest.fixture(scope="module")
def redis_set(copy: Path) -> Iterator[RedisSet]:
    redises = RedisSet(copy)
    try:
        redises.start()
        yield redises
    finally:
        redises.stop()


@pytest.fixture(scope="module")
def new_primary(copy: Path, redis_set: RedisSet) -> str:
    """The primary after a failover; the first one knew the client `before`."""
    clients(copy, "ensure", "before", *POLICY)
    return redis_set.fail_over()


def redises() -> list[dict[str, str]]:
    return [
        service
        for name, service in SERVICES.items()
        if "image: redis" in f"image: {service['image']}"
    ]


def clients(copy: Path, *arguments: str) -> str:
    """What a command on clients prints, with the example's configuration."""
    command = [sys.executable, "-m", "gateway", "clients", *arguments]
    command += ["--config", str(copy / "etc" / "gateway.toml"), "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_address_is_somebodys_alone_and_in_the_network() -> None:
    addresses = [address_of(service) for service in SERVICES.values()]
    assert len(set(addresses)) == len(addresses) == 10
    (item,) = COMPOSE["networks"]["inside"]["ipam"]["config"]
    network = ipaddress.ip_network(item.removeprefix("subnet: "))
    assert all(ipaddress.ip_address(address) in network for address in addresses)
    named = re.findall(
        rf"{re.escape(SUBNET)}[1-9]\d*\b",
        "".join(file.read_text() for file in EXAMPLE.rglob("*") if file.is_file()),
    )
    assert set(named) == set(addresses)


def test_every_folder_that_is_mounted_is_there() -> None:
    mounted = {volume.split(":")[0] for each in GATEWAYS for volume in SERVICES[each]["volumes"]}
    mounted |= {volume.split(":")[0] for volume in SERVICES["nginx"]["volumes"]}
    mounted |= set(re.findall(r'"(\./\w+):', "".join(s.get("volumes", "") for s in redises())))
    own = {each for each in mounted if each.startswith("./")}
    assert {each for each in own if not (EXAMPLE / each).is_dir()} == MADE_BY_HAND
    assert all(f" {each.removeprefix('./')}" in TEXT.partition(SEVERAL)[2] for each in MADE_BY_HAND)


def test_every_redis_has_a_volume_of_its_own() -> None:
    volumes = [re.findall(r'"([\w-]+):/data"', service["volumes"]) for service in redises()]
    assert sorted(name for (name,) in volumes) == sorted(COMPOSE["volumes"])
    assert len(volumes) == 6


def test_settings_name_the_sentinels_and_trust_nginx_alone(copy: Path) -> None:
    settings = load_settings(copy / "etc" / "gateway.toml", {})
    (trusted,) = settings.http.trusted_proxies
    addresses = {name: address_of(service) for name, service in SERVICES.items()}
    own = str(trusted.network_address).rpartition(".")[0] + "."
    assert (trusted.prefixlen, f"{own}{addresses['nginx'].removeprefix(SUBNET)}") == (
        32,
        str(trusted.network_address),
    )
    assert settings.http.allow_plain_http
    assert load_keyring(settings.keyring_file).key_ids == ("k1",)


def test_secrets_are_their_owners_alone_and_stay(copy: Path) -> None:
    made = [copy / "etc" / name for name in ("keyring", "admin-token.sha256", "redis-url")]
    made += [copy / "redis" / name for name in ("redis-auth.conf", "sentinel-auth.conf")]
    assert {stat.S_IMODE(file.stat().st_mode) for file in made} == {0o600}
    before = [file.read_bytes() for file in made]
    assert "nothing was changed" in make_secrets(copy)
    assert [file.read_bytes() for file in made] == before


def test_no_secret_of_the_example_would_be_committed(copy: Path) -> None:
    ignored = (EXAMPLE / ".gitignore").read_text().splitlines()
    there = {str(file.relative_to(EXAMPLE)) for file in EXAMPLE.rglob("*") if file.is_file()}
    made = {
        str(file.relative_to(copy))
        for folder in ("etc", "redis")
        for file in (copy / folder).iterdir()
        if str(file.relative_to(copy)) not in there
    }
    assert len(made) == 6
    assert made <= set(ignored)


def test_gateway_goes_on_after_a_failover(copy: Path, new_primary: str) -> None:
    assert new_primary != "redis-1"
    clients(copy, "ensure", "after", *POLICY)
    assert [each["clientId"] for each in json.loads(clients(copy, "list"))] == ["after", "before"]


def test_replica_comes_back_as_a_replica_of_the_new_primary(
    redis_set: RedisSet, new_primary: str
) -> None:
    (replica,) = {"redis-2", "redis-3"} - {new_primary}
    wait_until(lambda: redis_set.is_replica_of(replica, new_primary), "it follows the new one", 60)
    # As after a restart of its container: by what is in its volume.
    redis_set.stop_one(replica)
    redis_set.start_one(replica)
    assert redis_set.ask(replica, "ROLE")[:2] == ["slave", redis_set.addresses[new_primary]]


def test_nginx_takes_the_configuration_that_the_page_makes(tmp_path: Path) -> None:
    (block,) = (block for block in blocks("sh") if "nginx/gateways.conf" in block)
    command = block[block.index("install -d nginx\n") :]
    live = tmp_path / "live"
    for shown, own in (
        ("/usr/local/src/gateway", str(ROOT)),
        ("/var/lib/gateway-agent/certificates/live", str(live)),
    ):
        assert shown in command
        command = command.replace(shown, own)
    subprocess.run(["bash", "-euc", command], cwd=tmp_path, check=True, timeout=30)
    folder = live / "gateway.example.com"
    folder.mkdir(parents=True)
    write_server_certificate(
        tmp_path / "ca.pem", folder / "fullchain.pem", folder / "privkey.pem", "127.0.0.1"
    )
    temporary_paths = TEMPORARY_PATHS.format(folder=tmp_path)
    (tmp_path / "temporary").mkdir()
    main = MAIN.format(folder=tmp_path, temporary_paths=temporary_paths)
    (tmp_path / "nginx.conf").write_text(main)
    done = subprocess.run(
        [*nginx_command(tmp_path), "-t"],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    servers = re.findall(
        r"^ *server ([0-9.]+):8053 ", (tmp_path / "nginx/gateways.conf").read_text(), re.MULTILINE
    )
    assert servers == [address_of(SERVICES[name]) for name in GATEWAYS]


def rolling_restart(
    folder: Path, not_ready: str = "", *, as_plugin: bool = False
) -> tuple[int, list[str]]:
    """Its exit code, and the gateways that it started anew, with programs that only take notes.

    `as_plugin`: there is `docker compose`, and no `docker-compose`.
    """
    programs = folder / "programs"
    programs.mkdir()
    noted = folder / "noted"
    compose = f"""\
#!/bin/sh
[ "$1" != compose ] || shift
if [ "$1" = up ]; then for last; do :; done; echo "$last" >>{noted}; fi
[ "$1" != exec ] || [ "$3" != "{not_ready}" ]
"""
    name = "docker" if as_plugin else "docker-compose"
    for program, text in ((name, compose), ("sleep", "#!/bin/sh\n")):
        (programs / program).write_text(text)
        (programs / program).chmod(0o755)
    for program in ("sh", "dirname"):  # and nothing else: this machine may have either compose
        (programs / program).symlink_to(find_program(program, "coreutils"))
    environ = {**os.environ, "PATH": str(programs)}
    command = [EXAMPLE / "rolling-restart"]
    done = subprocess.run(command, env=environ, check=False, capture_output=True, timeout=60)
    return done.returncode, noted.read_text().split()


def test_rolling_restart_takes_every_gateway_in_its_turn(tmp_path: Path) -> None:
    assert rolling_restart(tmp_path) == (0, GATEWAYS)


def test_rolling_restart_takes_compose_as_a_plugin_of_docker(tmp_path: Path) -> None:
    assert rolling_restart(tmp_path, as_plugin=True) == (0, GATEWAYS)


def test_rolling_restart_ends_at_a_gateway_that_does_not_get_ready(tmp_path: Path) -> None:
    assert rolling_restart(tmp_path, not_ready="gateway-2") == (1, ["gateway-1", "gateway-2"])

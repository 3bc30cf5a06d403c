"""Starts Pebble, the small ACME CA, validating through the lab's DNS.

Responsible for: its JSON configuration, TLS files for its own listeners (Debian's package ships
none), readiness, and the root that verifies what it issues.
Must not: talk ACME; the gateway and tests do.
Called by: `tests.lab.lab`, the fixture `pebble`, fault tests.

Debian 12 ships 2.4.0: no ARI, no profiles, CAA is not looked at, certificates are valid for five
years unless told. Debian 13 ships 2.6.0, which has ARI. Every start makes a new root, a new
intermediate and forgets all accounts: `start` again is a CA that lost everything, with the same
addresses and the same TLS certificate.
"""

import json
import ssl
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import LabFault, Process, find_program
from tests.lab.tls import write_server_certificate

_ANSWER_LIMIT_SECONDS = 2.0

# Without the first Pebble sleeps up to 15 s before it validates. The second keeps it from locking
# itself up for good: who reads an authorization holds that and wants the store, who places an
# order holds the store and wants each authorization (Pebble 2.4); with one thread, neither is
# stopped half way. Without it that came once in a thousand issuances, many at once.
_ENVIRON = {"PEBBLE_VA_NOSLEEP": "1", "GOMAXPROCS": "1"}


class AcmeServer(Protocol):
    """What a gateway is told of an ACME server; `ca_file` verifies its HTTPS listener (PEM)."""

    @property
    def directory_url(self) -> str: ...

    @property
    def ca_file(self) -> Path: ...


class PebbleProcess:
    """A running Pebble.

    `ca_file` verifies its own HTTPS listeners, `root_file` the certificates that it issues (both
    PEM).
    """

    def __init__(
        self,
        folder: Path,
        dns_server: str,
        environ: Mapping[str, str],
        settings: Mapping[str, object],
        program: Path | None = None,
    ) -> None:
        acme_port, management_port = free_port(), free_port()
        self.directory_url = f"https://{LOOPBACK}:{acme_port}/dir"
        self.management_url = f"https://{LOOPBACK}:{management_port}"
        self.ca_file = folder / "ca.pem"
        self.root_file = folder / "root.pem"
        certificate_file, key_file = folder / "server.pem", folder / "server.key"
        write_server_certificate(self.ca_file, certificate_file, key_file, LOOPBACK)
        config_file = folder / "pebble.json"
        config = {
            "listenAddress": f"{LOOPBACK}:{acme_port}",
            "managementListenAddress": f"{LOOPBACK}:{management_port}",
            "certificate": str(certificate_file),
            "privateKey": str(key_file),
            # Where it would look for http-01 and tls-alpn-01 responses.
            "httpPort": 5002,
            "tlsPort": 5001,
            **settings,
        }
        config_file.write_text(json.dumps({"pebble": config}, indent=2))
        found = find_program("pebble", "pebble") if program is None else str(program)
        command = [found, "-config", str(config_file)]
        command += ["-dnsserver", dns_server]
        self.process = Process("pebble", command, folder, {**_ENVIRON, **environ})
        self._tls = ssl.create_default_context(cafile=self.ca_file)

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> None:
        """Start it, or start it again without anything it knew.

        Raises: LabFault.
        """
        self.process.start(self._is_ready)
        self.root_file.write_bytes(self._get(f"{self.management_url}/roots/0"))

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()

    def _is_ready(self) -> bool:
        # The management listener starts first; the directory is what clients need.
        try:
            return bool(
                self._get(self.directory_url) and self._get(f"{self.management_url}/roots/0")
            )
        except OSError:
            return False

    def _get(self, url: str) -> bytes:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._tls)
        )
        with opener.open(url, timeout=_ANSWER_LIMIT_SECONDS) as answer:
            body: bytes = answer.read()
        return body


def start_pebble(
    folder: Path,
    dns_server: tuple[str, int],
    environ: Mapping[str, str] | None = None,
    *,
    validity_seconds: int | None = None,
    settings: Mapping[str, object] | None = None,
    program: Path | None = None,
) -> PebbleProcess:
    """Start Pebble in `folder`, asking `dns_server` for challenges.

    `environ` may change its habits (`PEBBLE_WFE_NONCEREJECT`, `PEBBLE_AUTHZREUSE`); `settings` are
    added to its configuration (`externalAccountBindingRequired`, `domainBlocklist` …); `program` is
    another Pebble than the system's (`tests.lab.pebble_newer`).

    Raises: LabFault, also when `validity_seconds` is given and this Pebble has no such setting.
    """
    validity = {} if validity_seconds is None else _validity_settings(validity_seconds)
    server = PebbleProcess(
        folder,
        "{}:{}".format(*dns_server),
        environ or {},
        {**validity, **(settings or {})},
        program,
    )
    server.start()
    if validity_seconds is not None:
        try:
            require_validity(server.process.log_file.read_text(), validity_seconds)
        except LabFault:
            server.stop()
            raise
    return server


def require_validity(log: str, seconds: int) -> None:
    """Find out from Pebble's log whether it took the validity that it was told.

    It ignores settings that it does not know, but says at its start what it will do.

    Raises: LabFault when it does something else.
    """
    if f"certificate validity period of {seconds} seconds" not in log:
        raise LabFault(
            "this Pebble cannot be told how long its certificates are valid "
            "(2.4.0, 2.6.0 and 2.10.0 can)"
        )


def _validity_settings(seconds: int) -> dict[str, object]:
    profile = {"description": "as short as the lab wants", "validityPeriod": seconds}
    # The first is for Pebble before it had profiles, which are all that newer ones go by.
    return {"certificateValidityPeriod": seconds, "profiles": {"default": profile}}

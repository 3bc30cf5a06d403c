"""Other ACME clients, as their users run them against the lab's BIND and Pebble: lego and certbot.

Responsible for their options, without any wait for propagation. They are Debian packages that
`scripts/setup` does not install: a bench leaves out those that are not there, and says so.
Called by `issuance`, `issuing`.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.bench.commands import run
from tests.lab.lab import Lab
from tests.lab.process import LabFault

_LIMIT_SECONDS = 60.0
_EMAIL = "hostmaster@example.test"
_TTL = 60

_HOOK = """#!/bin/sh
# $1 is `add` or `delete`; the rest comes from certbot.
nsupdate -k {key_file} <<END
server {host} {port}
update $1 _acme-challenge.$CERTBOT_DOMAIN. {ttl} TXT "$CERTBOT_VALIDATION"
send
END
"""


def is_there(program: str) -> bool:
    """Whether it is installed."""
    return shutil.which(program) is not None


class Lego:
    """lego with its RFC 2136 provider: no propagation check, interval 0."""

    def __init__(self, lab: Lab) -> None:
        self._folder = lab.folder / "lego"
        tsig = lab.bind.tsig
        primary = "{}:{}".format(*lab.bind.primary)
        self.environ = {
            **os.environ,
            "LEGO_CA_CERTIFICATES": str(lab.pebble.ca_file),
            "RFC2136_NAMESERVER": primary,
            "RFC2136_TSIG_ALGORITHM": f"{tsig.algorithm}.",
            "RFC2136_TSIG_KEY": tsig.name,
            "RFC2136_TSIG_SECRET": tsig.secret_base64,
            "RFC2136_POLLING_INTERVAL": "0",
            "RFC2136_SEQUENCE_INTERVAL": "0",
            "RFC2136_TTL": str(_TTL),
        }
        self._command = ["lego", "--server", lab.pebble.directory_url, "--accept-tos"]
        self._command += ["--path", str(self._folder), "--email", _EMAIL]
        self._command += ["--dns", "rfc2136", "--dns.disable-cp", "--dns.resolvers", primary]

    def issue(self, hostname: str) -> float:
        """Have one certificate issued; how many seconds it took. Raises: LabFault."""
        command = [*self._command, "--domains", hostname, "run"]
        ended = run(command, environ=self.environ, limit_seconds=_LIMIT_SECONDS)
        if not self.has(hostname):
            raise LabFault(f"lego has no certificate for {hostname}")
        return ended.seconds

    def issue_all(self, hostnames: Sequence[str], at_once: int) -> float:
        """Have a certificate each, so many processes at once. Raises: LabFault."""
        each = [*self._command, "--domains", "{}", "run"]
        command = ["xargs", "-P", str(at_once), "-I", "{}", *each]
        limit_seconds = _LIMIT_SECONDS + _LIMIT_SECONDS / at_once * len(hostnames)
        ended = run(
            command,
            environ=self.environ,
            given="\n".join(hostnames),
            limit_seconds=limit_seconds,
        )
        missing = [hostname for hostname in hostnames if not self.has(hostname)]
        if missing:
            raise LabFault(f"lego has no certificate for {len(missing)} hostnames: {missing[0]}")
        return ended.seconds

    def has(self, hostname: str) -> bool:
        """Whether there is a certificate."""
        return (self._folder / "certificates" / f"{hostname}.crt").exists()


class Certbot:
    """certbot with nsupdate in its hooks, which take no time to speak of; propagation 0."""

    def __init__(self, lab: Lab) -> None:
        self._folder = lab.folder / "certbot"
        self._folder.mkdir(mode=0o700)
        host, port = lab.bind.primary
        key_file, hook_file = self._folder / "key", self._folder / "hook"
        key_file.touch(mode=0o600)
        key_file.write_text(lab.bind.tsig.statement())
        hook_file.write_text(_HOOK.format(key_file=key_file, host=host, port=port, ttl=_TTL))
        hook_file.chmod(0o700)
        self._environ = {**os.environ, "REQUESTS_CA_BUNDLE": str(lab.pebble.ca_file)}
        self._command = ["certbot", "certonly", "--non-interactive", "--agree-tos"]
        self._command += ["--email", _EMAIL, "--server", lab.pebble.directory_url]
        for option in ("config", "work", "logs"):
            self._command += [f"--{option}-dir", str(self._folder / option)]
        self._command += ["--manual", "--preferred-challenges", "dns"]
        self._command += ["--manual-auth-hook", f"{hook_file} add"]
        self._command += ["--manual-cleanup-hook", f"{hook_file} delete"]

    def issue(self, hostname: str) -> float:
        """Have one certificate issued; how many seconds it took. Raises: LabFault."""
        command = [*self._command, "--domains", hostname]
        ended = run(command, environ=self._environ, limit_seconds=_LIMIT_SECONDS)
        if not self._file(hostname).exists():
            raise LabFault(f"certbot has no certificate for {hostname}")
        return ended.seconds

    def _file(self, hostname: str) -> Path:
        return self._folder / "config" / "live" / hostname / "fullchain.pem"

"""A relay as a test holds it: nginx, the lineages of its hostnames, and who signs for them.

Responsible for: installing fresh certificates as the agent does, by `Lineage.install`, and
handshakes that tell what is served. The authority is the lab's own: what is tested is the swap, not
the issuing.
Must not: reload; a test runs the hook that it is about.
Called by: the tests beside it, `swapping`.
"""

import ssl
from collections.abc import Sequence
from pathlib import Path

from gateway.agent.hook import Hook
from gateway.agent.lineage import FileAccess, Lineage
from gateway.client import Bundle, read_bundle
from tests.lab.certificates import LabAuthority
from tests.lab.nginx import Nginx
from tests.lab.tls_load import client_context, connect, shown_serial

HOOK_LIMIT_SECONDS = 20.0

_ACCESS = FileAccess(owner=None, group=None, key_mode=0o600, combined=False)


class Relay:
    """An nginx in the new `folder`, yet to be started, and its hostnames, without certificates yet.

    `installed` holds the serial numbers of each hostname's certificates, in order.
    """

    def __init__(self, folder: Path, hostnames: Sequence[str]) -> None:
        self.hostnames = tuple(hostnames)
        self.certificates_dir = folder / "certificates"
        self.root_file = folder / "root.pem"
        self.installed: dict[str, list[int]] = {hostname: [] for hostname in hostnames}
        self._authority = LabAuthority()
        self._lineages = {
            hostname: Lineage(self.certificates_dir, hostname, _ACCESS) for hostname in hostnames
        }
        self.root_file.write_text(self._authority.root_pem)
        (folder / "nginx").mkdir()
        self.nginx = Nginx(folder / "nginx", self.certificates_dir, hostnames)

    def issue(self, hostname: str) -> Bundle:
        """A fresh certificate, which is not installed yet."""
        issued = self._authority.issue(hostname)
        return read_bundle(issued.chain_pem, issued.private_key_pem, hostname)

    def install(self, hostname: str) -> int:
        """Install a fresh certificate; answer its serial number."""
        bundle = self.issue(hostname)
        self._lineages[hostname].install(bundle)
        self.installed[hostname].append(bundle.serial_number)
        return bundle.serial_number

    def hook_environment(self, hostname: str) -> dict[str, str]:
        """What the agent tells a deploy hook."""
        return {
            "RENEWED_LINEAGE": str(self._lineages[hostname].live),
            "RENEWED_DOMAINS": hostname,
        }

    def live_file(self, hostname: str, name: str) -> Path:
        """A file of a hostname, by the path that nginx reads it by."""
        return self._lineages[hostname].live / name

    def connect(
        self,
        hostname: str,
        context: ssl.SSLContext | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLSocket:
        """Shake hands as a client that verifies all. Raises: OSError."""
        return connect(self.nginx.address, context or self.context(), hostname, session)

    def context(self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        """A client of one TLS version that trusts the relay's authority and no other."""
        return client_context(self.root_file, version)

    def served(self, hostname: str) -> int:
        """The serial number that a new client is shown. Raises: OSError."""
        with self.connect(hostname) as tls:
            return shown_serial(tls)


def reload_hook(nginx: Nginx) -> Hook:
    """The deploy hook of a relay whose nginx is running."""
    return Hook(tuple(nginx.reload_command), HOOK_LIMIT_SECONDS)

"""The story: a relay gets its record and its certificate, and gives both back.

Responsible for: what is done in which order, why, and what must come of it.
Must not: start or stop anything; `__main__` does.
Called by: `__main__`.
"""

import re
import shutil
import time
from pathlib import Path
from typing import Any

from tests.lab.demo.caller import Answer, Caller
from tests.lab.demo.programs import Programs
from tests.lab.demo.stages import MEANINGS, stages_of
from tests.lab.demo.telling import StoryFault, Teller
from tests.lab.lab import Lab

ZONE = "example.test"
CLIENT_ID = "relays"
PATTERN = f"relay.*.{ZONE}"
PREFIXES = ["198.51.100.0/24", "2001:db8::/32"]
OWNERSHIP = {"appId": "cluster-relay:cluster-a", "hostname": f"relay.cluster-a.{ZONE}"}
HOSTNAME = OWNERSHIP["hostname"]
CHALLENGE_NAME = f"_acme-challenge.{HOSTNAME}"
RECORD_A = {"type": "A", "value": "198.51.100.7", "ttl": 300}
RECORD_AAAA = {"type": "AAAA", "value": "2001:db8::7", "ttl": 300}
MARKER = "owner marker"

SYNC = "syncGatewayClientDnsRecord"
GET = "getGatewayClientCertificate"
RELEASE = "releaseGatewayClientCertificate"
PROVISION = "provisionGatewayClientCredential"

_OUTSIDE_ADDRESS = "203.0.113.9"
_OUTSIDE_HOSTNAME = f"www.{ZONE}"
_TAKEN = {"appId": "cluster-relay:cluster-b", "hostname": f"relay.cluster-b.{ZONE}"}
_HAND_ADDRESS, _HAND_TTL = "192.0.2.44", 600
_HAND_RECORD = f"A {_HAND_ADDRESS}"

_TOKEN = re.compile(r"gwc_[A-Za-z0-9]+_[A-Za-z0-9_-]{43,}")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)
_ISSUANCE_LIMIT_SECONDS = 60.0


class Story:
    """The acts, in order. Each raises `StoryFault` when it does not go as it must.

    `folder` is the story's own, for the files of `nsupdate` and `openssl`. `log_file` is the
    gateway's log. `client_token` is there once `play` has come past the first act.
    """

    def __init__(
        self, lab: Lab, log_file: Path, folder: Path, caller: Caller, teller: Teller
    ) -> None:
        self._lab = lab
        self._log_file = log_file
        self._folder = folder
        self._caller = caller
        self._teller = teller
        self._programs = Programs(folder, teller)
        self.client_token = ""

    def play(self) -> None:
        """Play all acts."""
        self._provision()
        self._publish()
        self._refuse_address()
        self._refuse_hostname()
        self._meet_conflict()
        self._verify(self._issue())
        self._replace()
        self._give_back()

    def _provision(self) -> None:
        self._teller.act(
            "A client is provisioned",
            "The operator says once which hostnames a client may use, which addresses it may "
            "publish and which methods it may call. The token is shown this once; only its digest "
            "is stored.",
        )
        spec = {
            "clientId": CLIENT_ID,
            "clientType": "cloudly",
            "hostnamePatterns": [PATTERN],
            "allowedDnsRecordAddresses": PREFIXES,
            "capabilities": ["syncDnsRecords", "requestCertificates", "readCertificates"],
        }
        admin_token = self._lab.config.admin_token
        answer = self._caller.call(PROVISION, admin_token, action="ensure", spec=spec).fields
        client = answer["client"]
        policy = (client["hostnamePatterns"], client["allowedDnsRecordAddresses"])
        self._teller.check("the policy is the one asked for", policy, ([PATTERN], PREFIXES))
        self._teller.check("it is the client's first policy", client["policyGeneration"], 1)
        self.client_token = str(answer["apiToken"])
        is_token = bool(_TOKEN.fullmatch(self.client_token))
        self._teller.check("a token came with it", is_token, wanted=True)

    def _publish(self) -> None:
        self._teller.act(
            "The relay gets its A record",
            "Beside the address lies a TXT record, the owner marker: it proves to the gateway, and "
            "to nobody else, who published the address.",
        )
        answer = self._sync(record=RECORD_A)
        self._teller.check("published", answer.status, "managed-created")
        self._teller.check("the answer states it", answer.fields["record"], RECORD_A)
        self._look_at_both(HOSTNAME, [_told(RECORD_A), MARKER], "have the address and its marker")

    def _refuse_address(self) -> None:
        self._teller.act(
            "An address outside of the allowance is refused",
            f"The client may publish addresses in {' and '.join(PREFIXES)}, and no other.",
        )
        before = self._serial()
        outside = {**RECORD_A, "value": _OUTSIDE_ADDRESS}
        self._teller.check("refused", self._sync(record=outside).status, "target-invalid")
        self._teller.check("the zone was not changed", self._serial(), before)

    def _refuse_hostname(self) -> None:
        self._teller.act(
            "A hostname outside of the pattern is refused",
            f"The client may use {PATTERN}, where * is exactly one label. This time the call "
            "itself is not admitted, so the answer is an error.",
        )
        before = self._serial()
        ownership = {**OWNERSHIP, "hostname": _OUTSIDE_HOSTNAME}
        answer = self._sync(ownership=ownership, record=RECORD_A)
        self._teller.check("refused", answer.status, "hostname-forbidden")
        self._teller.check("the zone was not changed", self._serial(), before)

    def _meet_conflict(self) -> None:
        hostname = _TAKEN["hostname"]
        self._teller.act(
            "A record made by hand is a conflict",
            "Somebody adds a record with a key of their own. The client's pattern covers the name, "
            "but the gateway did not publish what is there, so it leaves it alone and says what it "
            "found.",
        )
        host, port = self._lab.bind.primary
        self._programs.nsupdate(
            self._lab.bind.hand,
            [
                f"server {host} {port}",
                f"update add {hostname} {_HAND_TTL} A {_HAND_ADDRESS}",
                "send",
            ],
        )
        before = self._serial()
        answer = self._sync(ownership=_TAKEN, record=RECORD_A)
        self._teller.check("a conflict", answer.status, "record-conflict")
        found = {"name": hostname, "type": "A", "value": _HAND_ADDRESS, "ttl": _HAND_TTL}
        evidence = answer.fields["conflictingRecords"]
        self._teller.check("the evidence is the hand-made record", evidence, [found])
        self._teller.check("the zone was not changed", self._serial(), before)
        self._look_at_both(hostname, [_HAND_RECORD], "have the hand-made record and no other")

    def _issue(self) -> dict[str, Any]:
        self._teller.act(
            "The relay gets its certificate",
            "The first call starts an issuance and says when to ask again. The gateway proves to "
            "the CA that it controls the name by a TXT record in the same zone (dns-01).",
        )
        answer = self._get()
        self._teller.check("an issuance runs", answer.status, "pending")
        end = time.monotonic() + _ISSUANCE_LIMIT_SECONDS
        while answer.status == "pending":
            if time.monotonic() > end:
                raise StoryFault(f"no certificate within {_ISSUANCE_LIMIT_SECONDS:g} s")
            pause_seconds = answer.fields["retryAfterMs"] / 1000
            self._teller.aside(f"Asking again in {pause_seconds:g} s, as the answer says.")
            time.sleep(pause_seconds)
            answer = self._get()
        self._teller.check("the certificate is there", answer.status, "ready")
        self._show_stages()
        self._look_at_both(CHALLENGE_NAME, [], "have no challenge record left")
        certificate: dict[str, Any] = answer.fields["certificate"]
        return certificate

    def _show_stages(self) -> None:
        stages = stages_of(HOSTNAME, self._log_file)
        self._teller.details(["", "How it went, from the gateway's own log:"])
        self._teller.details(f"  {stage.line}" for stage in stages)
        states = [stage.state for stage in stages]
        self._teller.check("every stage was passed, in order", states, list(MEANINGS))

    def _verify(self, certificate: dict[str, Any]) -> None:
        self._teller.act(
            "The certificate verifies",
            "With openssl, against the CA's own root: the chain, the name, and that the private "
            "key belongs to it.",
        )
        leaf, *intermediates = _PEM.findall(certificate["chainPem"])
        (self._folder / "leaf.pem").write_text(leaf)
        (self._folder / "intermediates.pem").write_text("".join(intermediates))
        shutil.copy(self._lab.pebble.root_file, self._folder / "root.pem")
        shown = self._programs.openssl(
            *("x509", "-in", "leaf.pem", "-noout"),
            *("-issuer", "-dates", "-ext", "subjectAltName"),
        )
        names = re.findall(r"DNS:([^\s,]+)", shown)
        self._teller.check("it is for this one name", names, [HOSTNAME])
        verdict = self._programs.openssl(
            *("verify", "-CAfile", "root.pem", "-untrusted", "intermediates.pem"),
            *("-verify_hostname", HOSTNAME, "leaf.pem"),
        )
        self._teller.check("the chain leads to the CA's root", verdict.strip(), "leaf.pem: OK")
        of_key = self._programs.public_key_of(certificate["privateKeyPem"])
        in_leaf = self._programs.public_key_in("leaf.pem")
        self._teller.check("the private key belongs to it", of_key, in_leaf)
        times = [certificate[name] for name in ("validFrom", "renewAfter", "validUntil")]
        self._teller.check("renewAfter lies within its validity", times, sorted(times))

    def _replace(self) -> None:
        self._teller.act(
            "A is replaced by AAAA",
            "One UPDATE message takes the old address out and puts the new one in, on condition "
            "that the zone still holds what the gateway published.",
        )
        answer = self._sync(record=RECORD_AAAA)
        self._teller.check("replaced", answer.status, "managed-updated")
        self._teller.check("the answer states it", answer.fields["record"], RECORD_AAAA)
        wanted = [_told(RECORD_AAAA), MARKER]
        self._look_at_both(HOSTNAME, wanted, "have the new address and its marker, not the old")

    def _give_back(self) -> None:
        self._teller.act(
            "Release and withdraw",
            "The relay gives back its certificate and its record. What others made stays.",
        )
        answer = self._caller.call(RELEASE, self.client_token, ownership=OWNERSHIP)
        self._teller.check("the certificate is released", answer.status, "released")
        self._teller.check(
            "the record is withdrawn", self._sync(delete=True).status, "managed-deleted"
        )
        self._look_at_both(HOSTNAME, [], "have nothing at the hostname")
        self._look_at_both(_TAKEN["hostname"], [_HAND_RECORD], "still have the hand-made record")

    def _sync(self, *, ownership: dict[str, str] = OWNERSHIP, **wanted: object) -> Answer:
        return self._caller.call(SYNC, self.client_token, ownership=ownership, **wanted)

    def _get(self) -> Answer:
        return self._caller.call(GET, self.client_token, ownership=OWNERSHIP)

    def _look_at_both(self, name: str, wanted: list[str], what: str) -> None:
        bind = self._lab.bind
        found = [
            self._programs.dig(server, name, wanted) for server in (bind.primary, bind.secondary)
        ]
        self._teller.check(
            f"primary and secondary {what}",
            [answer.records for answer in found],
            [sorted(wanted)] * len(found),
        )

    def _serial(self) -> int:
        return self._programs.serial(self._lab.bind.primary, ZONE)


def _told(record: dict[str, object]) -> str:
    """A record as `Found.records` tells it."""
    return f"{record['type']} {record['value']}"

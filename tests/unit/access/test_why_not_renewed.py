"""Why a holder may have no new certificate, as an operator reads it."""

from dataclasses import replace

import pytest

from gateway.access.clients import Client, Credential
from gateway.access.gate import Absence, absence_of, why_not_renewed
from gateway.contract.names import ClientId, CredentialId, Hostname

NOW_MS = 1_800_000_000_000
NAME = Hostname("a.example.com")
LIVE = Client(
    ClientId("cluster-a"),
    "cloudly",
    ("*.example.com",),
    (),
    frozenset({"requestCertificates"}),
    1,
    (Credential(CredentialId("c"), "digest", NOW_MS - 1),),
)
EXPIRED = replace(LIVE.credentials[0], expires_at_ms=NOW_MS)


@pytest.mark.parametrize(
    ("client", "absence", "why"),
    [
        (LIVE, None, None),
        (None, Absence.GONE, "there is no such client any more"),
        (replace(LIVE, credentials=()), Absence.REVOKED, "its client is revoked: it has no live"),
        (replace(LIVE, credentials=(EXPIRED,)), Absence.EXPIRED, "the last one has expired"),
        (replace(LIVE, capabilities=frozenset()), None, "the capability requestCertificates"),
        (
            replace(LIVE, hostname_patterns=("b.example.com",)),
            None,
            "none of its client's patterns",
        ),
    ],
)
def test_first_reason_is_told(
    client: Client | None, absence: Absence | None, why: str | None
) -> None:
    assert absence_of(client, NOW_MS) is absence
    told = why_not_renewed(client, NAME, NOW_MS)
    assert told is None if why is None else why in (told or "")

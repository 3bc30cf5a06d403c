"""Statuses for the tests of what is told of them."""

from pathlib import Path

from gateway.agent.clocks import DAY_MS, HOUR_MS, SECOND_MS
from gateway.agent.status import (
    CertificateStatus,
    Complaint,
    HookStatus,
    OwnershipStatus,
    RecordStatus,
)
from gateway.contract import AppId, DnsRecord, Hostname

NOW_MS = 1_800_000_000_000
"""2027-01-15 08:00:00 UTC."""

HOSTNAME = Hostname("relay.cluster-a.example.com")
VERSION = "0003-20270101T000000Z-0a1b2c3d4e5f"
LIVE = Path("/var/lib/gateway-agent/certificates/live", HOSTNAME)
RECORD = DnsRecord(type="A", value="198.51.100.85", ttl=60)
SERVED = OwnershipStatus(
    AppId("cluster-relay:a"),
    HOSTNAME,
    RecordStatus(
        source="A of the interface eth0",
        wanted=RECORD,
        published=RECORD,
        published_at_ms=NOW_MS - 3 * HOUR_MS,
        is_published=True,
        fault=None,
    ),
    CertificateStatus(
        live=LIVE,
        version=VERSION,
        fingerprint="0a1b",
        not_before_ms=NOW_MS - 49 * DAY_MS,
        not_after_ms=NOW_MS + 41 * DAY_MS,
        unusable=None,
        renew_after_ms=NOW_MS + 11 * DAY_MS,
        answered_at_ms=NOW_MS - 5 * HOUR_MS,
        next_ask_ms=NOW_MS + 19 * HOUR_MS,
        fault=None,
        hook=HookStatus(is_done=True, tries=0, fault=None),
    ),
)
NEVER_SERVED = OwnershipStatus(
    AppId("cluster-relay:b"),
    Hostname("relay.cluster-b.example.com"),
    RecordStatus(
        source="given: 198.51.100.86",
        wanted=None,
        published=None,
        published_at_ms=None,
        is_published=False,
        fault=Complaint("no way", NOW_MS - 90 * SECOND_MS),
    ),
    CertificateStatus(
        live=Path("/var/lib/gateway-agent/certificates/live/relay.cluster-b.example.com"),
        version=None,
        fingerprint=None,
        not_before_ms=None,
        not_after_ms=None,
        unusable="there is no certificate yet",
        renew_after_ms=None,
        answered_at_ms=None,
        next_ask_ms=NOW_MS + 30 * SECOND_MS,
        fault=Complaint("dns-not-ready: nothing answers"),
        hook=HookStatus(is_done=False, tries=0, fault=None),
    ),
    forgotten="it is not JSON",
)

"""Whether a client's policy lets it have a record, in a sentence for an operator: pure.

By the same rules as a call of the client itself, without a credential of it. Called by the command
line, when a hostname is handed to a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.access.gate import may_hold
from gateway.contract import compile_allowance

if TYPE_CHECKING:
    from gateway.access.clients import Client
    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname


def why_not(client: Client, hostname: Hostname, record: DnsRecord) -> str | None:
    """What forbids the record to the client; None when nothing does."""
    if not may_hold(client, hostname):
        return f"{hostname} matches none of the hostname patterns of {client.client_id}."
    if "syncDnsRecords" not in client.capabilities:
        return f"{client.client_id} lacks the capability syncDnsRecords."
    if not compile_allowance(client.allowed_dns_record_addresses).allows(record):
        return f"The address {record.value} lies in none of the prefixes of {client.client_id}."
    return None

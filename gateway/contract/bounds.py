"""The numbers of the contract: how long, how many, how large.

Responsible for the one object that every rule and every message takes its bounds from, so that a
client can show them as well. Holds no rule itself. Used by the value modules of this package and,
under its public name, by clients.
"""

from dataclasses import dataclass
from typing import Final

DNS_RECORD_TYPES: Final = ("A", "AAAA")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostnameContract:
    """Bounds of the values a gateway client sends; inclusive on both sides."""

    min_hostname_labels: int = 2
    max_hostname_characters: int = 253
    max_label_characters: int = 63
    max_app_id_characters: int = 128
    dns_record_types: tuple[str, ...] = DNS_RECORD_TYPES
    min_ttl_seconds: int = 60
    max_ttl_seconds: int = 86_400
    default_ttl_seconds: int = 300
    max_allowed_dns_record_addresses: int = 64
    max_hostname_patterns: int = 64
    min_literal_pattern_labels: int = 2


GATEWAY_CLIENT_HOSTNAME_CONTRACT: Final = HostnameContract()

"""The configured zones: where each one's primary is, which key signs, and which zone holds a name.

Responsible for values only. Must not speak to a server (`exchange` does), nor believe that a zone
really holds a name because its suffix matches: a delegation may lie between (`observe`). Built once
by the composition root. A TSIG secret never shows in a repr, so neither in a log nor a traceback.
"""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import dns.name
import dns.tsig

from gateway.contract.names import ZoneName
from gateway.dns.names import is_plain, to_name, to_text

_TSIG: Final = 250
_ANY: Final = 255
_TSIG_FIELDS_BYTES: Final = 16
"""Of its data, beside algorithm and MAC: time, fudge, the MAC's size, id, error, other's size."""

ALGORITHMS = ("hmac-sha256", "hmac-sha384", "hmac-sha512", "hmac-sha224", "hmac-sha1")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A DNS server. `host` is an IP literal, or a name for the system's resolver."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _QuietKey(dns.tsig.Key):
    """dnspython's key, without the secret that its own repr shows (2.9)."""

    def __repr__(self) -> str:
        return f"<TSIG key {self.name}>"


@dataclass(frozen=True, slots=True)
class TsigKey:
    """A TSIG key (RFC 8945). `algorithm` is one of `ALGORITHMS`; `secret` is not base64 any more.

    Raises: ValueError for another algorithm (GSS-TSIG too) or a name that is no domain name.
    """

    name: str
    algorithm: str
    secret: bytes = field(repr=False)
    owner: bytes = field(init=False, repr=False, compare=False)
    """The name as a signature has it (RFC 8945, 4.3.3)."""
    hash_name: str = field(init=False, repr=False, compare=False)
    """What `hashlib` calls it; its signatures have `mac_bytes`."""
    mac_bytes: int = field(init=False, repr=False, compare=False)
    record_head: bytes = field(init=False, repr=False, compare=False)
    """Of the signature's record, what is between its name and the time: type to algorithm."""
    signed_head: bytes = field(init=False, repr=False, compare=False)
    """What is signed of that record before the time: name, class, TTL and algorithm."""

    def __post_init__(self) -> None:
        name = to_name(self.name)
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"TSIG algorithm must be one of {', '.join(ALGORITHMS)}")
        owner, algorithm = name.to_digestable(), to_name(self.algorithm).to_digestable()
        hash_name = self.algorithm.removeprefix("hmac-")
        mac_bytes = hashlib.new(hash_name, usedforsecurity=False).digest_size
        size = len(algorithm) + mac_bytes + _TSIG_FIELDS_BYTES
        for part, value in (
            ("owner", owner),
            ("hash_name", hash_name),
            ("mac_bytes", mac_bytes),
            ("record_head", struct.pack("!HHIH", _TSIG, _ANY, 0, size) + algorithm),
            ("signed_head", owner + struct.pack("!HI", _ANY, 0) + algorithm),
        ):
            object.__setattr__(self, part, value)  # frozen, and made once instead of each time

    def for_signing(self) -> dns.tsig.Key:
        """The key in dnspython's form."""
        return _QuietKey(to_name(self.name), self.secret, to_name(self.algorithm))


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone that the gateway may update.

    `primary` is the server to ask, `standbys` are those to ask when it does not answer: all of
    them answer for the same data. `servers` are the name servers that must know a challenge before
    the CA is told; empty means those of the zone's NS RRset, each at `nameserver_port`. One that
    is silent is gone on without after `silent_server_seconds`, if that is set.
    `interrupts_wildcards`: a challenge is published though a wildcard's host stops resolving.
    """

    name: ZoneName
    primary: Endpoint
    key: TsigKey
    standbys: tuple[Endpoint, ...] = ()
    servers: tuple[Endpoint, ...] = ()
    nameserver_port: int = 53
    silent_server_seconds: float | None = None
    interrupts_wildcards: bool = False

    @property
    def apex(self) -> dns.name.Name:
        """The zone's own name."""
        return to_name(self.name)

    def at_each_primary(self) -> "tuple[Zone, ...]":
        """The zone as each of its primaries alone would serve it, the preferred one first."""
        if not self.standbys:
            return (self,)
        return tuple(
            replace(self, primary=server, standbys=()) for server in (self.primary, *self.standbys)
        )


class Zones:
    """All configured zones. Raises ValueError when one is there twice."""

    def __init__(self, zones: Iterable[Zone]) -> None:
        self.all = tuple(zones)
        self._by_apex = {zone.apex: zone for zone in self.all}
        self._by_text = {to_text(zone.apex): zone for zone in self.all}
        if len(self._by_apex) != len(self.all):
            raise ValueError("a zone is configured twice")

    def holding(self, name: str | dns.name.Name) -> Zone | None:
        """The zone with the longest suffix of whole labels; `name` may be its apex.

        Raises: ValueError when `name` is no domain name.
        """
        if isinstance(name, str) and is_plain(name):
            return self._holding_plain(name)
        suffix = to_name(name) if isinstance(name, str) else name
        while suffix != dns.name.root:
            if (zone := self._by_apex.get(suffix)) is not None:
                return zone
            suffix = suffix.parent()
        return None

    def _holding_plain(self, text: str) -> Zone | None:
        while text:
            if (zone := self._by_text.get(text)) is not None:
                return zone
            text = text.partition(".")[2]
        return None

    def told_apart(self, name: str) -> str | None:
        """The name of the zone that holds `name`, if any; None where only one is configured."""
        zone = self.holding(name) if len(self.all) > 1 else None
        return None if zone is None else zone.name

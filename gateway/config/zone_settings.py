"""The settings of one zone: its servers and the key that signs everything sent to them.

Must not: read files; see `settings`.
"""

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretBytes,
    ValidationInfo,
    field_validator,
)

from gateway.config.tables import DnsName, Number, Port, Table, refuse_other_than_text
from gateway.config.values import Address, read_address, read_base64_secret

DNS_PORT = 53
MOST_PRIMARIES = 8

TsigAlgorithm = Literal["hmac-sha256", "hmac-sha384", "hmac-sha512"]


def _read_primary(value: object) -> Address:
    if isinstance(value, Address):
        return value
    return read_address(refuse_other_than_text(value), DNS_PORT)


def _read_primaries(value: object) -> object:
    """One server as text is a list of one; its faults are the key's, not those of an item."""
    return value if isinstance(value, (list, tuple)) else (_read_primary(value),)


def _check_primaries(value: tuple[Address, ...]) -> tuple[Address, ...]:
    if not 1 <= len(value) <= MOST_PRIMARIES:
        raise ValueError(f"must name 1 to {MOST_PRIMARIES} servers, and names {len(value)}")
    repeated = [address for address in dict.fromkeys(value) if value.count(address) > 1]
    if repeated:
        host, port = repeated[0]
        raise ValueError(f"must name each server once, and names {host} port {port} twice")
    return value


def _read_server(value: object, info: ValidationInfo) -> Address:
    return read_address(refuse_other_than_text(value), info.data.get("nameserver_port", DNS_PORT))


class TsigSettings(Table):
    """The key that signs everything sent to one zone's servers."""

    name: DnsName
    algorithm: TsigAlgorithm = "hmac-sha256"
    hidden_secret: Annotated[SecretBytes, Field(alias="secret")]

    @field_validator("hidden_secret", mode="before")
    @classmethod
    def _read_secret(cls, value: object) -> SecretBytes:
        return SecretBytes(read_base64_secret(refuse_other_than_text(value)))

    @property
    def secret(self) -> bytes:
        """The key's bytes, in clear; not base64."""
        return self.hidden_secret.get_secret_value()


class ZoneSettings(Table):
    """A zone that the gateway may write to.

    `servers` empty means: those of its NS RRset. Without `silent_server_seconds` a name server
    that does not answer is waited for without end.
    """

    name: DnsName
    primaries: Annotated[
        tuple[Annotated[Address, BeforeValidator(_read_primary)], ...],
        BeforeValidator(_read_primaries),
        AfterValidator(_check_primaries),
        Field(alias="primary"),
    ]
    nameserver_port: Port = DNS_PORT  # before `servers`, whose default port it is
    servers: tuple[Annotated[Address, BeforeValidator(_read_server)], ...] = ()
    silent_server_seconds: Annotated[int, Number, Field(ge=1, le=86_400)] | None = None
    wildcard_hosts: Literal["refuse", "interrupt"] = "refuse"
    tsig: TsigSettings

"""The settings of the HTTP listener: where it listens, its TLS, and how many connections it takes.

Must not: read files; see `settings`.
"""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, PlainValidator, ValidationInfo, field_validator

from gateway.config.tables import Number, Table, refuse_other_than_text
from gateway.config.values import Address, is_loopback, read_address, read_prefix
from gateway.contract.hostnames import hostname_fault

DEFAULT_LISTEN = Address("127.0.0.1", 8053)

_Value = TypeVar("_Value")

Connections = Annotated[int, Number, Field(ge=1, le=100_000)]
Prefix = Annotated[IPv4Network | IPv6Network, PlainValidator(read_prefix)]


class HttpSettings(Table):
    """The listener. `tls` before the rest, which is judged by it; paths are absolute.

    `files`: the certificate's chain and its key are read from files. `self`: the gateway issues the
    certificate of `tls_hostname` itself.
    """

    tls: Literal["off", "files", "self"] = "off"
    allow_plain_http: bool = False
    listen: Address = DEFAULT_LISTEN
    certificate_file: Annotated[Path | None, Field(validate_default=True)] = None
    key_file: Annotated[Path | None, Field(validate_default=True)] = None
    tls_hostname: Annotated[str | None, Field(validate_default=True)] = None
    client_ca_file: Path | None = None
    connections: Connections = 2048
    connections_per_address: Connections = 512
    trusted_proxies: tuple[Prefix, ...] = ()

    @field_validator("listen", mode="before")
    @classmethod
    def _read_listen(cls, value: object) -> Address:
        return read_address(refuse_other_than_text(value), None)

    @field_validator("listen", mode="after")
    @classmethod
    def _refuse_plain_http_beyond_loopback(cls, value: Address, info: ValidationInfo) -> Address:
        is_plain = info.data.get("tls") == "off" and not info.data.get("allow_plain_http", True)
        if is_plain and not is_loopback(value.host):
            raise ValueError(
                "must be a loopback address without TLS: set http.tls, or http.allow_plain_http = "
                "true where a proxy with TLS is in front"
            )
        return value

    @field_validator("certificate_file", "key_file", mode="after")
    @classmethod
    def _demand_file(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        return _belonging_to("files", value, info)

    @field_validator("tls_hostname", mode="after")
    @classmethod
    def _check_hostname(cls, value: str | None, info: ValidationInfo) -> str | None:
        fault = None if value is None else hostname_fault(value)
        if fault is not None:
            raise ValueError(fault)
        return _belonging_to("self", value, info)

    @field_validator("client_ca_file", mode="after")
    @classmethod
    def _demand_tls(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None and info.data.get("tls") == "off":
            raise ValueError('must be left out while http.tls is "off"')
        return value

    @property
    def host(self) -> str:
        """An IP literal (IPv6 without brackets) or a name."""
        return self.listen.host

    @property
    def port(self) -> int:
        """The TCP port."""
        return self.listen.port


def _belonging_to(mode: str, value: _Value | None, info: ValidationInfo) -> _Value | None:
    tls = info.data.get("tls", mode)
    if tls == mode and value is None and "tls" in info.data:
        raise ValueError(f'is required with http.tls = "{mode}"')
    if tls != mode and value is not None:
        raise ValueError(f'must be left out unless http.tls is "{mode}"')
    return value

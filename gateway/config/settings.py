"""The settings of one gateway: frozen values with the keys that `gateway.toml` has.

Responsible for: which keys there are, what each may hold and its default. Must not: read files or
the environment; `config.loading` does, resolves every `…_file` and every relative path, and hands
plain values over. Secrets are kept out of `repr` and of every message; each has a property that
answers its plain value: `redis.url`, `tsig.secret`, `eab.hmac_key`. Called by `config.loading`,
read by `gateway.wiring` and `gateway.cli`.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretBytes,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.config.values import (
    EMBEDDED,
    Address,
    read_address,
    read_base64_secret,
    read_base64url_secret,
    read_contact,
    read_directory_url,
    read_dns_name,
    read_redis_url,
    read_token_digest,
)

ENVIRONMENT_PREFIX = "GATEWAY_"
DNS_PORT = 53

KeyTypeName = Literal["ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-3072", "rsa-4096"]
TsigAlgorithm = Literal["hmac-sha256", "hmac-sha384", "hmac-sha512"]


def _refuse_truth_values(value: object) -> object:
    # pydantic reads `true` as the number 1.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _refuse_other_than_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def _read_server(value: object, info: ValidationInfo) -> Address:
    return read_address(_refuse_other_than_text(value), info.data.get("nameserver_port", DNS_PORT))


_Number = BeforeValidator(_refuse_truth_values)
Port = Annotated[int, _Number, Field(ge=1, le=65535)]
DnsName = Annotated[str, AfterValidator(read_dns_name)]


class _Table(BaseModel):
    """A table of the file: frozen, and no key but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class AdminSettings(_Table):
    """Who may provision clients. The digest is lower-case hex."""

    token_sha256: Annotated[str, AfterValidator(read_token_digest)] = Field(repr=False)


class HttpSettings(_Table):
    """Where the gateway listens."""

    listen: Address = Address("127.0.0.1", 8053)

    @field_validator("listen", mode="before")
    @classmethod
    def _read_listen(cls, value: object) -> Address:
        return read_address(_refuse_other_than_text(value), None)

    @property
    def host(self) -> str:
        """An IP literal (IPv6 without brackets) or a name."""
        return self.listen.host

    @property
    def port(self) -> int:
        """The TCP port."""
        return self.listen.port


class RedisSettings(_Table):
    """Where Redis is. The URL may hold a password."""

    hidden_url: Annotated[SecretStr, Field(alias="url")] = SecretStr(EMBEDDED)

    @field_validator("hidden_url", mode="after")
    @classmethod
    def _check_url(cls, value: SecretStr) -> SecretStr:
        read_redis_url(value.get_secret_value())
        return value

    @property
    def url(self) -> str:
        """`embedded`, or a `redis://`, `rediss://` or `unix://` URL, in clear."""
        return self.hidden_url.get_secret_value()

    @property
    def is_embedded(self) -> bool:
        """Whether the gateway runs a Redis of its own in the state directory."""
        return self.url == EMBEDDED


class LogSettings(_Table):
    """What is logged, and how a line looks."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class TsigSettings(_Table):
    """The key that signs everything sent to one zone's servers."""

    name: DnsName
    algorithm: TsigAlgorithm = "hmac-sha256"
    hidden_secret: Annotated[SecretBytes, Field(alias="secret")]

    @field_validator("hidden_secret", mode="before")
    @classmethod
    def _read_secret(cls, value: object) -> SecretBytes:
        return SecretBytes(read_base64_secret(_refuse_other_than_text(value)))

    @property
    def secret(self) -> bytes:
        """The key's bytes, in clear; not base64."""
        return self.hidden_secret.get_secret_value()


class ZoneSettings(_Table):
    """A zone that the gateway may write to. `servers` empty means: those of its NS RRset."""

    name: DnsName
    primary: Address
    nameserver_port: Port = DNS_PORT  # before `servers`, whose default port it is
    servers: tuple[Annotated[Address, BeforeValidator(_read_server)], ...] = ()
    tsig: TsigSettings

    @field_validator("primary", mode="before")
    @classmethod
    def _read_primary(cls, value: object) -> Address:
        return read_address(_refuse_other_than_text(value), DNS_PORT)

    @property
    def primary_host(self) -> str:
        """An IP literal (IPv6 without brackets) or a name."""
        return self.primary.host

    @property
    def primary_port(self) -> int:
        """The port for UDP and TCP alike."""
        return self.primary.port


class EabSettings(_Table):
    """External account binding, RFC 8555 section 7.3.4."""

    key_id: Annotated[str, Field(min_length=1)]
    hidden_hmac_key: Annotated[SecretStr, Field(alias="hmac_key")]

    @field_validator("hidden_hmac_key", mode="after")
    @classmethod
    def _check_hmac_key(cls, value: SecretStr) -> SecretStr:
        read_base64url_secret(value.get_secret_value())
        return value

    @property
    def hmac_key(self) -> str:
        """The key in clear, base64url."""
        return self.hidden_hmac_key.get_secret_value()


class AcmeSettings(_Table):
    """The certificate authority and what is asked of it.

    `renew_at` is the share of a certificate's lifetime after which its renewal starts.
    """

    directory: Annotated[str, AfterValidator(read_directory_url)]
    ca_bundle: Path | None = None
    contact: tuple[Annotated[str, AfterValidator(read_contact)], ...] = ()
    key_type: KeyTypeName = "ecdsa-p256"
    renew_at: Annotated[float, _Number, Field(ge=0.1, le=0.9)] = 0.66
    eab: EabSettings | None = None


class WorkerSettings(_Table):
    """Whether `gateway serve` also moves issuances on, and how many at once."""

    enabled: bool = True
    concurrency: Annotated[int, _Number, Field(ge=1, le=1000)] = 32


class Settings(BaseSettings):
    """All of it; made by `load_settings` only. Every path is absolute."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter="__",
    )

    state_dir: Path
    keyring_file: Path
    admin: AdminSettings
    http: HttpSettings = HttpSettings()
    redis: RedisSettings = RedisSettings()
    log: LogSettings = LogSettings()
    zones: tuple[ZoneSettings, ...] = ()
    acme: AcmeSettings | None = None
    worker: WorkerSettings = WorkerSettings()

    _secret_files: tuple[Path, ...] = PrivateAttr(default=())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` hands over: the process's environment is not read here."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that secrets were read from, `gateway.toml` among them when it holds one."""
        return self._secret_files

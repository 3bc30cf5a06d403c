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
    read_authority_name,
    read_base64_secret,
    read_base64url_secret,
    read_contact,
    read_directory_url,
    read_dns_name,
    read_redis_url,
    read_token_digest,
)
from gateway.store.places import Kind, read_place

ENVIRONMENT_PREFIX = "GATEWAY_"
DNS_PORT = 53
MOST_PRIMARIES = 8

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


def _refuse_single_table(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("must be a list: [[acme]], once for each authority")
    return value


def _read_primary(value: object) -> Address:
    if isinstance(value, Address):
        return value
    return read_address(_refuse_other_than_text(value), DNS_PORT)


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
    return read_address(_refuse_other_than_text(value), info.data.get("nameserver_port", DNS_PORT))


_Number = BeforeValidator(_refuse_truth_values)
Port = Annotated[int, _Number, Field(ge=1, le=65535)]
Figure = Annotated[int, _Number, Field(ge=0, le=1_000_000)]
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
    """Where Redis is, and how many copies each write waits for. The URL may hold a password.

    Without `replicas`: one where a replica can become the primary, else none.
    """

    hidden_url: Annotated[SecretStr, Field(alias="url")] = SecretStr(EMBEDDED)
    replicas: Annotated[int, _Number, Field(ge=0, le=9)] | None = None

    @field_validator("hidden_url", mode="after")
    @classmethod
    def _check_url(cls, value: SecretStr) -> SecretStr:
        read_redis_url(value.get_secret_value())
        return value

    @field_validator("replicas", mode="after")
    @classmethod
    def _refuse_unless_there_can_be_some(
        cls, value: int | None, info: ValidationInfo
    ) -> int | None:
        url = info.data.get("hidden_url")
        if value and url is not None and url.get_secret_value() == EMBEDDED:
            raise ValueError("must be 0: the embedded Redis has no replicas")
        return value

    @property
    def has_several(self) -> bool:
        """Whether there are several servers, behind Sentinels or in a Cluster."""
        return not self.is_embedded and read_place(self.url).kind is not Kind.SINGLE

    @property
    def awaited_replicas(self) -> int:
        """How many replicas each write waits for."""
        if self.replicas is None:
            return int(self.has_several)
        return self.replicas

    @property
    def url(self) -> str:
        """`embedded`, or a URL in one of the forms of `store.places`, in clear."""
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
    silent_server_seconds: Annotated[int, _Number, Field(ge=1, le=86_400)] | None = None
    wildcard_hosts: Literal["refuse", "interrupt"] = "refuse"
    tsig: TsigSettings


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


class BudgetSettings(_Table):
    """What the authority allows one account; 0 means no limit. The defaults are Let's Encrypt's.

    `reserved_for_renewals` and `client_share` are shares of the first two figures: what new names
    leave alone where renewals are counted, and what one client's new names may use of them.
    """

    orders_per_3_hours: Figure = 300
    certificates_per_domain_per_week: Figure = 50
    certificates_per_hostname_per_week: Figure = 5
    failed_validations_per_hour: Figure = 5
    renewals_are_counted: bool = False
    reserved_for_renewals: Annotated[float, _Number, Field(ge=0, le=0.9)] = 0.2
    client_share: Annotated[float, _Number, Field(gt=0, le=1)] = 0.5


class AcmeSettings(_Table):
    """One certificate authority and what is asked of it; `name` is what people call it by.

    `renew_at` is the share of a certificate's lifetime after which its renewal starts, where the
    authority itself names no time. `profile` is one of those that its directory names,
    `preferred_chain` the common name of the root that a chain should lead to.
    """

    name: Annotated[str, AfterValidator(read_authority_name)]
    directory: Annotated[str, AfterValidator(read_directory_url)]
    profile: Annotated[str, Field(min_length=1)] | None = None
    preferred_chain: Annotated[str, Field(min_length=1)] | None = None
    ca_bundle: Path | None = None
    contact: tuple[Annotated[str, AfterValidator(read_contact)], ...] = ()
    key_type: KeyTypeName = "ecdsa-p256"
    renew_at: Annotated[float, _Number, Field(ge=0.1, le=0.9)] = 0.66
    eab: EabSettings | None = None
    budget: BudgetSettings = BudgetSettings()


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
    acme: Annotated[tuple[AcmeSettings, ...], BeforeValidator(_refuse_single_table)] = ()
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

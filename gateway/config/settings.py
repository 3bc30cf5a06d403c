"""The settings of one gateway: frozen values with the keys that `gateway.toml` has.

Responsible for: which keys there are, what each may hold and its default. Must not: read files or
the environment; `config.loading` does, resolves every `…_file` and every relative path, and hands
plain values over. Secrets are kept out of `repr` and of every message; each has a property that
answers its plain value: `redis.url`, `tsig.secret`, `eab.hmac_key`, `traces.headers`. Called by
`config.loading`, read by `gateway.wiring` and `gateway.cli`.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.config.audit_settings import AuditSettings
from gateway.config.authority_settings import AcmeSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.limit_settings import LimitSettings
from gateway.config.metrics_settings import MetricsSettings
from gateway.config.page_settings import PageSettings
from gateway.config.tables import Number, Table
from gateway.config.trace_settings import TracesSettings
from gateway.config.values import (
    EMBEDDED,
    is_loopback,
    read_redis_url,
    read_token_digest,
)
from gateway.config.zone_settings import ZoneSettings
from gateway.store.places import Kind, read_place

ENVIRONMENT_PREFIX = "GATEWAY_"


def _refuse_single_table(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("must be a list: [[acme]], once for each authority")
    return value


class AdminSettings(Table):
    """Who may provision clients. The digest is lower-case hex."""

    token_sha256: Annotated[str, AfterValidator(read_token_digest)] = Field(repr=False)


class RedisSettings(Table):
    """Where Redis is, and how many copies each write waits for. The URL may hold a password.

    Without `replicas`: one where a replica can become the primary, else none.
    """

    hidden_url: Annotated[SecretStr, Field(alias="url")] = SecretStr(EMBEDDED)
    replicas: Annotated[int, Number, Field(ge=0, le=9)] | None = None

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


class LogSettings(Table):
    """What is logged, and how a line looks."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


class WorkerSettings(Table):
    """Whether `gateway serve` also moves issuances on, and how many at once."""

    enabled: bool = True
    concurrency: Annotated[int, Number, Field(ge=1, le=1000)] = 32


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
    metrics: MetricsSettings = MetricsSettings()
    page: PageSettings = PageSettings()
    traces: TracesSettings = TracesSettings()
    zones: tuple[ZoneSettings, ...] = ()
    acme: Annotated[tuple[AcmeSettings, ...], BeforeValidator(_refuse_single_table)] = ()
    worker: WorkerSettings = WorkerSettings()
    audit: AuditSettings = AuditSettings()
    limits: LimitSettings = LimitSettings()

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
    def authority_names(self) -> dict[str, str]:
        """What people call the authorities, by the URL of each one's directory."""
        return {acme.directory: acme.name for acme in self.acme}

    @property
    def page_is_on(self) -> bool:
        """Whether the listener has the operator's page.

        Unless it is said: where it is reached from this machine only, and no proxy is in front.
        """
        if self.page.enabled is not None:
            return self.page.enabled
        return is_loopback(self.http.host) and not self.http.trusted_proxies

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that secrets were read from, `gateway.toml` among them when it holds one."""
        return self._secret_files

"""The configuration: `gateway.toml` and the environment, read once into frozen settings.

`load_settings(find_file(given, environ), environ)` answers `Settings` or raises `ConfigInvalid`
with every fault at once. Called by `gateway.cli`; `gateway.wiring` builds the parts from what it
answers. Nothing else reads the environment. docs/configuration.md tells every key.
"""

from gateway.config.authority_settings import AcmeSettings, EabSettings
from gateway.config.faults import ConfigInvalid
from gateway.config.http_settings import HttpSettings
from gateway.config.limit_settings import LimitSettings
from gateway.config.loading import find_file, load_settings
from gateway.config.metrics_settings import MetricsSettings
from gateway.config.settings import (
    AdminSettings,
    LogSettings,
    RedisSettings,
    Settings,
    WorkerSettings,
)
from gateway.config.trace_settings import TracesSettings
from gateway.config.values import Address, is_loopback
from gateway.config.zone_settings import TsigSettings, ZoneSettings

__all__ = [
    "AcmeSettings",
    "Address",
    "AdminSettings",
    "ConfigInvalid",
    "EabSettings",
    "HttpSettings",
    "LimitSettings",
    "LogSettings",
    "MetricsSettings",
    "RedisSettings",
    "Settings",
    "TracesSettings",
    "TsigSettings",
    "WorkerSettings",
    "ZoneSettings",
    "find_file",
    "is_loopback",
    "load_settings",
]

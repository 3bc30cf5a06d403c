"""The configuration: `gateway.toml` and the environment, read once into frozen settings.

`load_settings(find_file(given, environ), environ)` answers `Settings` or raises `ConfigInvalid`
with every fault at once. Called by `gateway.cli`; `gateway.wiring` builds the parts from what it
answers. Nothing else reads the environment. docs/configuration.md tells every key.
"""

from gateway.config.authority_settings import AcmeSettings
from gateway.config.faults import ConfigInvalid
from gateway.config.loading import find_file, load_settings
from gateway.config.settings import RedisSettings, Settings
from gateway.config.trace_settings import TracesSettings
from gateway.config.values import Address, is_loopback
from gateway.config.zone_settings import ZoneSettings

__all__ = [
    "AcmeSettings",
    "Address",
    "ConfigInvalid",
    "RedisSettings",
    "Settings",
    "TracesSettings",
    "ZoneSettings",
    "find_file",
    "is_loopback",
    "load_settings",
]

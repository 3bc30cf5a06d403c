"""Reads the configuration, once: the file, the environment over it, the secrets' files.

Responsible for: one merged table with absolute paths and plain secrets, then the settings, or every
fault at once. Must not: decide what a value may be (`config.settings` does), or create anything.
Called by `gateway.cli` and by tests.
"""

from __future__ import annotations

import copy
import importlib.util
import ssl
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gateway.config.environment import (
    overlay,
    read_variables,
    setting_variables,
)
from gateway.config.faults import (
    FILE_SUFFIX,
    SECRETS,
    ConfigInvalid,
    Location,
    faults_of,
    label,
    unknown_key,
    variable_name,
)
from gateway.config.settings import Settings
from gateway.config.values import default_authority_name, directory_identity
from gateway.files import open_file, read_file, reason_of
from gateway.variables import SERVER_CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DEFAULT_FILE = Path("gateway.toml")
DEFAULT_PATHS = {"state_dir": "state", "keyring_file": "keyring"}

_PATHS = (
    ("state_dir",),
    ("keyring_file",),
    ("acme", "*", "ca_bundle"),
    ("traces", "ca_bundle"),
    *(("http", key) for key in ("certificate_file", "key_file", "client_ca_file")),
)
_MAX_FILE_BYTES = 1 << 20
_ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})  # noqa: S104 (compared with only)
_TRACE_PACKAGES = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
_TRACE_LIBRARIES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


def find_file(given: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Which file to read: the one given, else GATEWAY_CONFIG's, else ./gateway.toml.

    None when there is no ./gateway.toml but the environment has settings: those are all, then.
    """
    if given is not None:
        return given
    if environ.get(SERVER_CONFIG):
        return Path(environ[SERVER_CONFIG])
    if setting_variables(environ) and not DEFAULT_FILE.exists():
        return None
    return DEFAULT_FILE


def load_settings(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """The settings of the TOML file with those of the environment over it.

    Relative paths, in the file and in the environment, are relative to the file's folder, or to the
    working directory without a file. Raises ConfigInvalid with every fault there is.
    """
    return _Loading(path, setting_variables(environ)).run()


class _Loading:
    """One run: what was read so far and the faults found on the way."""

    def __init__(self, path: Path | None, variables: Mapping[str, str]) -> None:
        self._path = path
        self._folder = (path.parent if path is not None else Path()).absolute()
        self._variables = variables
        self._faults: list[str] = []
        self._judged: set[Location] = set()  # places whose fault is told already
        self._file_keys: dict[Location, Location] = {}  # where a secret came from, by its place
        self._secret_files: list[Path] = []

    def run(self) -> Settings:
        in_file = self._read_file()
        table = self._merge(in_file)
        self._resolve_secrets(table)
        self._resolve_paths(table)
        self._check_ca_bundles(table)
        self._find_duplicates(table, "zones", "name")
        self._find_duplicates(table, "acme", "directory", compared_as=directory_identity)
        self._name_authorities(table)
        self._find_duplicates(table, "acme", "name")
        self._drop_unknown_keys(table)
        try:
            settings = Settings(**table)
        except ValidationError as error:
            for place, sentence in faults_of(error):
                if place not in self._judged:
                    self._fault(self._file_keys.get(place, place), sentence)
        else:
            self._check_own_hostname(settings)
            self._check_listeners(settings)
            self._check_trace_libraries(settings)
        if self._faults:
            raise ConfigInvalid(self._faults)
        if self._path is not None and _holds_secret(in_file):
            self._secret_files.append(self._path.absolute())
        if settings.http.key_file is not None:
            self._secret_files.append(settings.http.key_file)
        settings._secret_files = (settings.keyring_file, *self._secret_files)
        return settings

    def _read_file(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            return tomllib.loads(_read_text(self._path))
        except tomllib.TOMLDecodeError as fault:
            said = f"is no valid TOML: {fault}"
        except FileNotFoundError:
            said = "there is no such file; `gateway init DIR` writes a first one"
        except (OSError, ValueError) as fault:
            said = f"cannot be read: {reason_of(fault)}"
        # Nothing else can be judged without it.
        raise ConfigInvalid([f"{self._path}: {said}"])

    def _merge(self, in_file: dict[str, Any]) -> dict[str, Any]:
        overrides, faults = read_variables(self._variables)
        self._faults += faults
        table: dict[str, Any] = DEFAULT_PATHS | copy.deepcopy(in_file)
        for key, value in overrides.items():
            try:
                table[key] = overlay(table.get(key, _nothing_yet(key)), value)
            except ValueError as fault:
                self._faults.append(f"{variable_name((key,))}: {fault}")
        return table

    def _resolve_secrets(self, table: dict[str, Any]) -> None:
        """Replace every `<secret>_file` by the secret that the file holds."""
        for pattern in SECRETS:
            key = pattern[-1]
            for place, parent in _tables(table, pattern[:-1]):
                path = parent.pop(f"{key}{FILE_SUFFIX}", None)
                if path is not None:
                    self._resolve_secret((*place, key), parent, path)

    def _resolve_secret(self, place: Location, parent: dict[str, Any], path: object) -> None:
        key = str(place[-1])
        if key in parent:
            self._fault(place, f"is given twice, as {key} and as {key}{FILE_SUFFIX}: keep one")
            return
        file_place = (*place[:-1], f"{key}{FILE_SUFFIX}")
        secret = self._read_secret(file_place, path)
        if secret is None:
            self._judged.add(place)  # or it would be called missing as well
        else:
            parent[key] = secret
            self._file_keys[place] = file_place

    def _read_secret(self, place: Location, path: object) -> str | None:
        if not isinstance(path, str) or not path:
            self._fault(place, "must be the path of a file")
            return None
        file = self._folder / path
        try:
            secret = _read_text(file).strip()
        except (OSError, ValueError) as fault:
            self._fault(place, f"cannot be read: {reason_of(fault)}: {file}")
            return None
        if not secret:
            self._fault(place, f"holds nothing: {file}")
            return None
        self._secret_files.append(file)
        return secret

    def _resolve_paths(self, table: dict[str, Any]) -> None:
        for pattern in _PATHS:
            for place, parent in _tables(table, pattern[:-1]):
                written = parent.get(pattern[-1])
                if written == "":
                    self._judged.add((*place, pattern[-1]))
                    self._fault((*place, pattern[-1]), "must be a path, not nothing")
                elif isinstance(written, str):
                    parent[pattern[-1]] = str(self._folder / written)

    def _check_ca_bundles(self, table: dict[str, Any]) -> None:
        for place, parent in (*_tables(table, ("acme", "*")), *_tables(table, ("traces",))):
            bundle = parent.get("ca_bundle")
            if isinstance(bundle, str) and bundle:
                try:
                    open_file(Path(bundle)).close()  # OpenSSL would wait for a pipe's writer
                    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(bundle)
                except (OSError, ValueError) as fault:  # ssl.SSLError is an OSError
                    said = (
                        "holds no PEM certificates"
                        if isinstance(fault, ssl.SSLError)
                        else (f"cannot be read: {reason_of(fault)}")
                    )
                    self._fault((*place, "ca_bundle"), f"{said}: {bundle}")

    def _find_duplicates(
        self,
        table: dict[str, Any],
        list_key: str,
        key: str,
        *,
        compared_as: Callable[[str], str] = str,
    ) -> None:
        """Two tables of one list must not have the same value for `key`."""
        first_place: dict[str, Location] = {}
        for place, item in _tables(table, (list_key, "*")):
            value = item.get(key)
            if not isinstance(value, str):
                continue
            first = first_place.setdefault(compared_as(value), place)
            if first is not place:
                self._judged.add((*place, key))  # what else is wrong with it, the first one tells
                other = label(first, self._variables)
                self._fault((*place, key), f'is the {key} of {other} too: "{value}"')

    def _name_authorities(self, table: dict[str, Any]) -> None:
        """Call each authority that has no name by its directory's host, unless another is."""
        authorities = list(_tables(table, ("acme", "*")))
        named = {
            acme["name"]: place for place, acme in authorities if isinstance(acme.get("name"), str)
        }
        for place, acme in authorities:
            if "name" in acme:
                continue
            self._judged.add((*place, "name"))
            try:
                name = default_authority_name(str(acme.get("directory")))
            except ValueError:
                continue  # it is the directory that is at fault
            if name is None:
                self._fault((*place, "name"), "is required: the directory's host cannot be one")
            elif name not in named:
                acme["name"] = name
                named[name] = place
            elif (*place, "directory") not in self._judged:
                other = label(named[name], self._variables)
                said = f'is required: the directory\'s host, "{name}", is the name of {other}'
                self._fault((*place, "name"), said)

    def _check_own_hostname(self, settings: Settings) -> None:
        """What the listener's own certificate takes, which other tables have."""
        hostname = settings.http.tls_hostname
        if hostname is None:
            return
        if not settings.acme:
            self._fault(("http", "tls"), 'needs an [[acme]] table to be "self"')
        zones = [zone.name for zone in settings.zones]
        if not any(f".{hostname}".endswith(f".{zone}") for zone in zones):
            said = f'must lie in one of the zones, which "{hostname}" does not'
            self._fault(("http", "tls_hostname"), said)

    def _check_listeners(self, settings: Settings) -> None:
        http, metrics = settings.http.listen, settings.metrics.listen
        if metrics is None or metrics.port != http.port:
            return
        if metrics.host == http.host or {metrics.host, http.host} & _ALL_ADDRESSES:
            said = f'must be another address than http.listen, "{http}", not "{metrics}"'
            self._fault(("metrics", "listen"), said)

    def _check_trace_libraries(self, settings: Settings) -> None:
        if settings.traces.endpoint is not None and not _has_trace_libraries():
            said = f"needs libraries that are not installed: pip install {_TRACE_PACKAGES}"
            self._fault(("traces", "endpoint"), said)

    def _drop_unknown_keys(self, table: dict[str, Any]) -> None:
        # BaseSettings takes arguments of its own (`_env_file`), which no file may reach.
        for key in [key for key in table if key not in Settings.model_fields]:
            del table[key]
            self._fault((key,), unknown_key((key,)))

    def _fault(self, place: Location, sentence: str) -> None:
        self._faults.append(f"{label(place, self._variables)}: {sentence}")


def _read_text(path: Path) -> str:
    """Read a file of UTF-8. Raises OSError, or ValueError for other content or too much of it."""
    content = read_file(path, _MAX_FILE_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


def _has_trace_libraries() -> bool:
    """Look for them without loading them."""
    try:
        return all(map(importlib.util.find_spec, _TRACE_LIBRARIES))
    except ModuleNotFoundError:  # not even what they lie in
        return False


def _nothing_yet(key: str) -> list[Any] | None:
    """What variables are laid over where the file has nothing: a list where one belongs."""
    field = Settings.model_fields.get(key)
    return [] if field is not None and field.default == () else None


def _tables(table: dict[str, Any], pattern: Location) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Every table at a place such as `zones.*.tsig`, with where it is. What is none is skipped."""
    found: list[tuple[Location, Any]] = [((), table)]
    for part in pattern:
        if part == "*":
            found = [
                ((*place, index), item)
                for place, items in found
                if isinstance(items, list)
                for index, item in enumerate(items)
            ]
        else:
            found = [
                ((*place, part), parent[part])
                for place, parent in found
                if isinstance(parent, dict) and part in parent
            ]
    for place, item in found:
        if isinstance(item, dict):
            yield place, item


def _holds_secret(in_file: dict[str, Any]) -> bool:
    """Whether the file itself holds one: a digest is none, and a URL only with a password."""
    return any(
        pattern[-1] in parent
        and pattern[-1] != "token_sha256"
        and (pattern[-1] != "url" or "@" in str(parent["url"]) or "password=" in str(parent["url"]))
        for pattern in SECRETS
        for _, parent in _tables(in_file, pattern[:-1])
    )

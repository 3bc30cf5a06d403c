"""The agent's configuration: `agent.toml`, read once into frozen settings.

Responsible for: which keys there are, what each may hold, its default, and telling every fault at
once, each after its key (`ownership[1].record.ttl: must be …`). What the wire also knows is judged
by the contract's own rules, so that a fault reads as the gateway would tell it. Paths come out
absolute, owners and groups as numbers. Must not: create anything, talk to anybody, or read the
token; `gateway.client.tokens` does that at each use. Called by `gateway.cli.agent`.
"""

from __future__ import annotations

import grp
import pwd
import ssl
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from gateway.agent.addresses import CommandAddress, GivenAddress, InterfaceAddress, Source
from gateway.agent.hook import SHELL, Hook
from gateway.agent.lineage import FileAccess
from gateway.agent.tables import Table
from gateway.agent.values import (
    credential_fault,
    interface_fault,
    principal_fault,
    text_fault,
    textfile_fault,
    url_fault,
    words_fault,
)
from gateway.client.tokens import TokenKind, TokenSource
from gateway.contract import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS, Ownership
from gateway.contract.addresses import address_fault
from gateway.contract.faults import quoted
from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import app_id_fault
from gateway.contract.records import record_type_fault, ttl_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gateway.contract import AppId, Hostname, RecordType
    from gateway.contract.faults import Check

LogFormat = Literal["console", "json"]

DEFAULT_STATE_DIR: Final = Path("/var/lib/gateway-agent")

_DAY_SECONDS: Final = 86_400
_KEY_MODES: Final = ("0600", "0640", "0400", "0440")
_MAX_FILE_BYTES: Final = 1 << 20
_TOKEN_KINDS: Final[dict[str, TokenKind]] = {
    "token_file": "file",
    "token_env": "env",
    "token_credential": "credential",
}


class ConfigInvalid(Exception):
    """The configuration cannot be used; `faults` has every reason, each `key: sentence`.

    `is_missing`: there is no such file.
    """

    def __init__(self, faults: Sequence[str], *, is_missing: bool = False) -> None:
        super().__init__("\n".join(faults))
        self.faults = list(faults)
        self.is_missing = is_missing


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Which gateway the agent talks to. `ca_file` is PEM, instead of the system's authorities."""

    url: str
    token: TokenSource
    ca_file: Path | None
    allow_plain_http: bool


@dataclass(frozen=True, slots=True)
class RecordSettings:
    """The address record that is kept published.

    `check_seconds` is how often the source is looked at; after `republish_seconds` the record is
    published again though nothing changed.
    """

    source: Source
    ttl: int
    check_seconds: int
    republish_seconds: int


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """The certificate's files, and what is run after each change of them."""

    access: FileAccess
    hook: Hook | None


@dataclass(frozen=True, slots=True)
class OwnershipSettings:
    """One hostname and what is kept current for it: a record, a certificate, or both."""

    app_id: AppId
    hostname: Hostname
    record: RecordSettings | None
    certificate: CertificateSettings | None

    @property
    def ownership(self) -> Ownership:
        """The ownership as the gateway is asked for it."""
        return Ownership(app_id=self.app_id, hostname=self.hostname)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """All of it; made by `load_agent_settings` only. Every path is absolute."""

    state_dir: Path
    certificates_dir: Path
    textfile: Path | None
    log_format: LogFormat
    gateway: GatewaySettings
    ownerships: tuple[OwnershipSettings, ...]


def load_agent_settings(path: Path, environ: Mapping[str, str]) -> AgentSettings:
    """The settings in a file. `environ` is kept for the token, which may be in it.

    Relative paths are relative to the file's folder. Neither the token nor any folder is looked at,
    so that `gateway agent status` may be used by who may not read the token. May be repeated.

    Raises:
        ConfigInvalid: with every fault there is.

    """
    faults: list[str] = []
    table = Table(_read_file(path), "", faults)
    settings = _Reading(path.parent.absolute(), environ).settings(table)
    if faults:
        raise ConfigInvalid(faults)
    return settings


class _Reading:
    """How each table becomes its settings. What is at fault is told by `Table`, and not used."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = dict(environ)
        self._withheld: tuple[str, ...] = ()

    def settings(self, table: Table) -> AgentSettings:
        state_dir = self._path(table, "state_dir", DEFAULT_STATE_DIR)
        settings = AgentSettings(
            state_dir=state_dir,
            certificates_dir=self._path(table, "certificates_dir", state_dir / "certificates"),
            textfile=self._optional_path(table, "textfile", textfile_fault),
            log_format=table.choice("log_format", ("console", "json"), "console"),
            # Before the ownerships: it says which variable no command inherits.
            gateway=self._gateway(table.required_table("gateway")),
            ownerships=self._ownerships(table.tables("ownership")),
        )
        table.close()
        return settings

    def _gateway(self, table: Table) -> GatewaySettings:
        allow_plain_http = table.flag("allow_plain_http")
        settings = GatewaySettings(
            url=table.value("url", lambda it: url_fault(it, allow_plain_http=allow_plain_http)),
            token=self._token(table),
            ca_file=self._ca_file(table),
            allow_plain_http=allow_plain_http,
        )
        table.close()
        return settings

    def _token(self, table: Table) -> TokenSource:
        if table.has("token"):
            table.fault("token", "does not belong into this file: the keys here say where it is")
        key = table.one_of(tuple(_TOKEN_KINDS), "where the token is") or "token_file"
        name = table.value(key, credential_fault if key == "token_credential" else text_fault, "")
        if key == "token_file":
            name = str(self._folder / name)
        if key == "token_env":
            self._withheld = (name,)
        return TokenSource(_TOKEN_KINDS[key], name, self._environ)

    def _ca_file(self, table: Table) -> Path | None:
        file = self._optional_path(table, "ca_file")
        if file is not None:
            try:
                if not stat.S_ISREG(file.stat().st_mode):  # a named pipe would be waited for
                    table.fault("ca_file", f"is no file: {file}")
                    return None
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
            except ssl.SSLError:
                table.fault("ca_file", f"holds no PEM certificates: {file}")
            except OSError as fault:
                table.fault("ca_file", f"cannot be read: {fault.strerror}: {file}")
        return file

    def _ownerships(self, tables: Sequence[Table]) -> tuple[OwnershipSettings, ...]:
        first_with: dict[str, Table] = {}
        found = []
        for table in tables:
            settings = self._ownership(table)
            hostname = settings.hostname  # nothing when it is at fault
            if hostname and (first := first_with.setdefault(hostname, table)) is not table:
                table.fault("hostname", f"is the hostname of {first.place} too: {quoted(hostname)}")
            found.append(settings)
        return tuple(found)

    def _ownership(self, table: Table) -> OwnershipSettings:
        app_id = table.value("app_id", app_id_fault)
        hostname = table.value("hostname", hostname_fault)
        if not any([table.has("record"), table.has("certificate")]):
            table.fault_here("needs [ownership.record], [ownership.certificate] or both")
        record, certificate = table.table("record"), table.table("certificate")
        settings = OwnershipSettings(
            app_id=app_id,
            hostname=hostname,
            record=None if record is None else self._record(record),
            certificate=None if certificate is None else self._certificate(certificate),
        )
        table.close()
        return settings

    def _record(self, table: Table) -> RecordSettings:
        record_type = table.value("type", record_type_fault, None)
        settings = RecordSettings(
            source=self._source(table, record_type),
            ttl=int(table.value("ttl", ttl_fault, BOUNDS.default_ttl_seconds)),
            check_seconds=table.whole_number("check_seconds", 1, _DAY_SECONDS, 30),
            republish_seconds=table.whole_number("republish_seconds", 60, 30 * _DAY_SECONDS, 3600),
        )
        table.close()
        return settings

    def _source(self, table: Table, record_type: RecordType | None) -> Source:
        timeout = table.whole_number("command_timeout_seconds", 1, 300, 10)
        kind = table.one_of(("value", "interface", "command"), "where the address comes from")
        if kind == "interface":
            if not table.has("type"):
                table.fault("type", 'is required with interface: "A" or "AAAA"')
            interface = table.value("interface", interface_fault)
            return InterfaceAddress(interface, record_type or "A")
        if kind == "command":
            command = self._command(table, "command")
            return CommandAddress(command, timeout, record_type, self._withheld)
        if kind == "value":
            return GivenAddress(table.value("value", lambda it: address_fault(it, record_type)))
        return GivenAddress("")

    def _certificate(self, table: Table) -> CertificateSettings:
        access = FileAccess(
            owner=_number_of(table, "owner", "user", lambda name: pwd.getpwnam(name).pw_uid),
            group=_number_of(table, "group", "group", lambda name: grp.getgrnam(name).gr_gid),
            key_mode=int(table.choice("key_mode", _KEY_MODES, _KEY_MODES[0]), 8),
            combined=table.flag("combined"),
        )
        timeout = table.whole_number("hook_timeout_seconds", 1, 3600, 60)
        hook = None
        if table.has("deploy_hook"):
            hook = Hook(self._hook_command(table), timeout, withheld=self._withheld)
        table.close()
        return CertificateSettings(access, hook)

    def _hook_command(self, table: Table) -> tuple[str, ...]:
        if not table.is_text("deploy_hook"):
            return self._command(table, "deploy_hook")
        return (*SHELL, table.value("deploy_hook", text_fault))

    def _command(self, table: Table, key: str) -> tuple[str, ...]:
        """A command as a list; a program with a slash is a path as any other here."""
        words = table.value(key, words_fault)
        if words is None:
            return ()
        program = str(self._folder / words[0]) if "/" in words[0] else words[0]
        return (program, *words[1:])

    def _path(self, table: Table, key: str, default: Path) -> Path:
        written: str | Path = table.value(key, text_fault, default)
        return self._folder / written

    def _optional_path(self, table: Table, key: str, check: Check = text_fault) -> Path | None:
        written = table.value(key, check, None)
        return None if written is None else self._folder / written


def _read_file(path: Path) -> dict[str, Any]:
    """The file's tables. Raises ConfigInvalid: nothing else can be judged without it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigInvalid([f"{path}: is not a file"])
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise ConfigInvalid([f"{path}: is too large"])
        # Some editors put a mark before the text, which is none of it.
        return _parsed(content.decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as fault:
        raise ConfigInvalid([f"{path}: is no valid TOML: {fault}"]) from None
    except UnicodeDecodeError:
        raise ConfigInvalid([f"{path}: is not UTF-8 text"]) from None
    except FileNotFoundError:
        raise ConfigInvalid([f"{path}: there is no such file"], is_missing=True) from None
    except RecursionError:
        raise ConfigInvalid([f"{path}: is nested too deeply"]) from None
    except (OSError, ValueError) as fault:  # a NUL in the path is a ValueError
        said = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        raise ConfigInvalid([f"{path}: cannot be read: {said}"]) from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's own bound
        raise tomllib.TOMLDecodeError("a number has too many digits") from None


def _number_of(table: Table, key: str, kind: str, look_up: Callable[[str], int]) -> int | None:
    """The number of a user or group that is given by name or number; None without one."""
    written = table.value(key, lambda value: principal_fault(value, kind), None)
    if written is None or isinstance(written, int):
        return written
    if written.isascii() and written.isdigit():
        return int(written)
    try:
        return look_up(written)
    except KeyError:
        table.fault(key, f"must be a {kind} of this machine, and {quoted(written)} is none")
        return None

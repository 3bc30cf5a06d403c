"""Where Redis is: the one URL of `redis.url`, for a single Redis, a Sentinel set or a Cluster.

| form | means |
| --- | --- |
| `redis://[user:password@]host[:port][/db]`, `unix:///path[?db=n]` | one Redis |
| `redis+sentinel://[user:password@]host[:port],…/service[/db]` | whatever the Sentinels say |
| `redis+cluster://[user:password@]host[:port],…` | a Cluster, found from any of these nodes |

`rediss` in place of `redis` is TLS, to the Sentinels as well. User and password are Redis's own;
`?sentinel_username=…&sentinel_password=…` are those of the Sentinels. The forms are those of
several other Python projects; redis-py itself has none for the second and the third.

Pure, and without redis-py, so that the configuration can read a URL. Called by `config.values` and
by this package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

REDIS_PORT: Final = 6379
SENTINEL_PORT: Final = 26379

_SCHEMES: Final = "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"
_OPTIONS: Final = (
    "db",
    "username",
    "password",
    "client_name",
    "socket_keepalive",
    "ssl_ca_certs",
    "ssl_cert_reqs",
    "ssl_certfile",
    "ssl_check_hostname",
    "ssl_keyfile",
    "ssl_min_version",
)
"""redis-py's options that may stand in a URL; time limits are the gateway's own."""

_SENTINEL_OPTIONS: Final = ("sentinel_username", "sentinel_password")
_MEMBER: Final = re.compile(
    r"(\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^\[\]:/?#@\s]+))(:(?P<port>[0-9]{1,5}))?"
)
_MAX_PORT: Final = 65535


class Kind(Enum):
    """How many Redis there are, and who says which one to ask."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


Address = tuple[str, int]
"""Host (IPv6 without brackets) and port; a path and 0 for a Unix socket."""


@dataclass(frozen=True, slots=True)
class Place:
    """A URL, read. `members` are the Sentinels, or nodes of the Cluster to begin with."""

    kind: Kind
    members: tuple[Address, ...]
    shown: str
    """Without user, password and options."""

    _member_url: str = field(repr=False)
    _node_url: str = field(repr=False)
    service: str = ""

    def member_url(self, address: Address) -> str:
        """redis-py's URL for one of the members."""
        return self._member_url.format(_bracketed(address))

    def node_url(self, address: Address) -> str:
        """redis-py's URL for a Redis that holds data."""
        return self._node_url.format(_bracketed(address))


def read_place(url: str) -> Place:
    """Read a URL. Raises ValueError with a phrase that goes on after the key: "must …"."""
    scheme, separator, rest = url.partition("://")
    secure, _, kind = scheme.partition("+")
    if kind in ("sentinel", "cluster") and secure in ("redis", "rediss") and separator:
        return _read_many(Kind(kind), secure, rest)
    return _read_single(url)


def _read_single(url: str) -> Place:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("must be a URL whose port is a number up to 65535") from None
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise ValueError(f'must be "embedded" or begin with {_SCHEMES}')
    if parts.scheme == "unix" and not parts.path:
        raise ValueError("must name a socket, such as unix:///run/redis/redis.sock")
    if parts.scheme != "unix" and (not parts.hostname or port == 0):
        raise ValueError("must name a host, such as redis://127.0.0.1:6379")
    _read_options(parts.query, _OPTIONS)
    address = (parts.path, 0) if parts.scheme == "unix" else (parts.hostname or "", port or 0)
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    literal = url.replace("{", "{{").replace("}", "}}")
    return Place(Kind.SINGLE, (address,), shown, literal, literal)


def _read_many(kind: Kind, secure: str, rest: str) -> Place:
    authority, _, query = rest.partition("?")
    authority, _, path = authority.partition("/")
    login, at, listed = authority.rpartition("@")
    default_port = SENTINEL_PORT if kind is Kind.SENTINEL else REDIS_PORT
    members = tuple(_read_member(member, default_port) for member in listed.split(","))
    known = _OPTIONS + (_SENTINEL_OPTIONS if kind is Kind.SENTINEL else ())
    options = dict(_read_options(query, known))
    service, db = _read_path(kind, path, options)
    sentinel = {name: options.pop(name, "") for name in _SENTINEL_OPTIONS}
    shared = {name: value for name, value in options.items() if name.startswith("ssl_")}
    own = {name.removeprefix("sentinel_"): value for name, value in sentinel.items() if value}
    node_url = _template(secure, f"{login}{at}", db, options)
    return Place(
        kind,
        members,
        f"{secure}+{kind.value}://{listed}{f'/{path}' if path else ''}",
        _template(secure, "", "", shared | own) if kind is Kind.SENTINEL else node_url,
        node_url,
        service,
    )


def _read_path(kind: Kind, path: str, options: dict[str, str]) -> tuple[str, str]:
    service, _, db = path.partition("/")
    if kind is Kind.CLUSTER:
        if path not in ("", "0") or options.get("db", "0") != "0":
            raise ValueError("must name no database: a Cluster has only one")
        return "", ""
    if not service:
        raise ValueError(
            "must name the Sentinels' service, such as redis+sentinel://host:26379/mymaster"
        )
    if db and not db.isdecimal():
        raise ValueError("must end in /service or /service/database, the latter a number")
    return service, db


def _read_options(query: str, known: tuple[str, ...]) -> list[tuple[str, str]]:
    options = parse_qsl(query, keep_blank_values=True)
    strange = [name for name, _ in options if name not in known]
    if strange:
        raise ValueError(f"must have no other options than {', '.join(known)}")
    for name, value in options:
        if name in ("db", "ssl_min_version") and not value.isdecimal():
            raise ValueError(f"must have a number as its option {name}")
    return options


def _read_member(member: str, default_port: int) -> Address:
    match = _MEMBER.fullmatch(member)
    port = int(match["port"] or default_port) if match else 0
    if match is None or not 0 < port <= _MAX_PORT:
        raise ValueError(
            "must list its servers as host:port,host:port, with what is special in the user or the"
            " password percent-encoded"
        )
    return match["v6"] or match["host"], port


def _template(scheme: str, login: str, db: str, options: dict[str, str]) -> str:
    query = f"?{urlencode(options)}" if options else ""
    before, after = (
        text.replace("{", "{{").replace("}", "}}")
        for text in (f"{scheme}://{login}", f"/{db}{query}")
    )
    return f"{before}{{}}{after}"


def _bracketed(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

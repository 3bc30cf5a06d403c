"""Copies of a holding, written into Redis by the hundred thousand.

Responsible for the documents and their entries in the indices, as `store/lua/commit.lua` leaves
both. They are made as bytes: what is the same in all is made once, and a million takes minutes
where a library's commands took an hour. Called by `stocking`, in processes of its own.
"""

import json
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.sealing import load_keyring
from gateway.dns.owner import Owner
from gateway.store import keys
from gateway.store.documents import Holder
from tests.bench.stock import Stock, address
from tests.bench.zones import owner_of
from tests.lab.ports import LOOPBACK
from tests.lab.process import LabFault

_DAY_MS = 24 * 3_600_000
_AT_ONCE = 2_000
_LIMIT_SECONDS = 60.0
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Model:
    """The holding that was made by calls: its document, its private key, the file of the keyring.

    `renewals` of the copies come due within that time, the questions about the others in a day.
    """

    fields: Mapping[str, str]
    private_key: bytes
    keyring_file: Path
    renewals: int
    within_seconds: float


def copy_to(port: int, stock: Stock, model: Model, numbers: range) -> None:
    """Store one document for each number, and enter it in all indices.

    Raises: LabFault when Redis refuses any of it.
    """
    press = _Press(stock, model)
    with socket.create_connection((LOOPBACK, port), _LIMIT_SECONDS) as connection:
        for start in range(0, len(numbers), _AT_ONCE):
            commands = list(press.commands(numbers[start : start + _AT_ONCE]))
            connection.sendall(b"".join(commands))
            _read_integers(connection, len(commands))


class _Press:
    """Makes the commands for some numbers."""

    def __init__(self, stock: Stock, model: Model) -> None:
        self._stock = stock
        self._model = model
        self._keyring = load_keyring(model.keyring_file)
        own = ("version", "holder", "record", "certificate")
        others = [text for pair in model.fields.items() if pair[0] not in own for text in pair]
        self._others = b"".join(map(_bulk, others))
        self._words = 2 + 2 * len(own) + len(others)
        self._record = _head(model.fields["record"], ("value", "edition"))
        varied = ("sealed_key", "issuance_id", "ask_at_ms", "renew_at_ms")
        self._certificate = _head(model.fields["certificate"], varied)
        self._renew_at_ms = int(json.loads(model.fields["certificate"])["renew_at_ms"])

    def commands(self, numbers: range) -> Iterator[bytes]:
        """One for each document, and one for each index that gets any of them."""
        now_ms = time.time_ns() // 1_000_000
        entries: dict[str, list[str]] = defaultdict(list)
        for number in numbers:
            owner = owner_of(self._stock, number)
            due_ms, command = self._document(owner, number, now_ms)
            yield command
            bucket = keys.bucket_of(owner.hostname)
            entries[keys.due_key(bucket)] += (str(due_ms), owner.hostname)
            entries[keys.names_key(bucket)] += ("0", owner.hostname)
            index = keys.client_holdings_key(keys.fingerprint(owner.client_id))
            entries[index] += (str(now_ms), owner.hostname)
        for key, scores_and_names in entries.items():
            yield _command("ZADD", key, *scores_and_names)

    def _document(self, owner: Owner, number: int, now_ms: int) -> tuple[int, bytes]:
        """When it is due, and the command that stores it."""
        stock, model = self._stock, self._model
        renew_at_ms = self._renew_at_ms
        if number <= model.renewals:
            renew_at_ms = now_ms + int(model.within_seconds * 1000 * number / model.renewals)
        ask_at_ms = now_ms + _DAY_MS * number // stock.holdings
        sealed_key = self._keyring.seal(
            model.private_key, purpose=KEY_PURPOSE, bound_to=binding_of(owner)
        )
        record = {"value": address(number), "edition": secrets.token_hex(8)}
        certificate = {
            "sealed_key": sealed_key,
            "issuance_id": secrets.token_hex(8),
            "ask_at_ms": ask_at_ms,
            "renew_at_ms": renew_at_ms,
        }
        own = (
            *("version", secrets.token_hex(8)),
            *("holder", _text({"clientId": owner.client_id, "appId": owner.app_id})),
            *("record", self._record + _text(record)[1:]),
            *("certificate", self._certificate + _text(certificate)[1:]),
        )
        words = ("HSET", keys.host_key(owner.hostname), *own)
        command = b"*%d\r\n" % self._words + b"".join(map(_bulk, words)) + self._others
        return min(renew_at_ms, ask_at_ms), command


def binding_of(owner: Owner) -> tuple[str, str, str]:
    """What the private key of an ownership is bound to."""
    return key_binding(Holder(owner.client_id, owner.app_id), owner.hostname)


def _head(document: str, varied: Iterable[str]) -> str:
    """An object without some of its members, open for them to be written behind it."""
    members: dict[str, Any] = json.loads(document)
    kept = {name: value for name, value in members.items() if name not in varied}
    return _text(kept)[:-1] + ","


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _command(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(map(_bulk, words))


def _bulk(word: str) -> bytes:
    raw = word.encode()
    return b"$%d\r\n%b\r\n" % (len(raw), raw)


def _read_integers(connection: socket.socket, count: int) -> None:
    """Read so many replies, which all have to be numbers."""
    while count:
        read = connection.recv(_READ_BYTES)
        if not read or b"-" in read:
            raise LabFault(f"Redis takes no holdings: {read[:200]!r}")
        count -= read.count(b"\n")

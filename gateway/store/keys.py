"""Every Redis key the gateway uses: its name, its shape and its lifetime.

All that is known about one hostname lies in one hash, its *document*, and every document shares
one hash tag with the due queue of its bucket. So one Lua script changes a document and its place in
the queue atomically, on a single Redis as on a Cluster, and hostnames spread over the nodes by
bucket. A tag per single hostname was the alternative: it would leave the queue in another slot,
and a crash between the two writes would strand an issuance until a sweep found it.

| key | shape | lifetime |
| --- | --- | --- |
| `gw:{h<bucket>}:host:<hostname>` | hash, see `store.documents` | while held, claimed, indebted |
| `gw:{h<bucket>}:due` | sorted set: hostname, score = epoch ms of its next work | for ever |
| `gw:{c<fingerprint>}:client` | hash: a client's policy and credentials | until it is removed |
| `gw:{c<fingerprint>}:holdings` | sorted set: hostname, score = epoch ms of its entry | as above |
| `gw:clients` | set of client ids, for listing | for ever |
| `gw:claims` | set of claimed hostnames, for listing | for ever |
| `gw:keyring` | hash: a value that the right keyring opens | for ever |
| `gw:account:<fingerprint>` | hash: an ACME account, its key (and a next one) sealed | for ever |
| `gw:{a<fingerprint>}:ledger` | sorted set: the keys below, score = when they end | as they |
| `gw:{a<fingerprint>}:<limit>:<subject>` | epoch ms when a figure is unused again | until then |
| `gw:{a<fingerprint>}:hold-<reach>:<subject>` | JSON: a CA's "come back later" | until that time |
| `gw:{a<fingerprint>}:suspended` | JSON: why and until when an authority is skipped | until then |

Called by whoever reads or writes Redis; knows no domain rule.
"""

from __future__ import annotations

import hashlib
import zlib

BUCKETS = 128
"""How many slots hostnames spread over. Part of the stored form: changing it moves every key."""

CLIENTS_KEY = "gw:clients"
CLAIMS_KEY = "gw:claims"
KEYRING_KEY = "gw:keyring"
HOST_KEYS = "gw:{h*}:host:*"
"""The pattern (of Redis's own kind) of all documents' keys; braces mean nothing in one."""
ACCOUNT_KEYS = "gw:account:*"
"""The same of all ACME accounts."""

_FINGERPRINT_HEX_DIGITS = 24


def bucket_of(hostname: str) -> int:
    """The bucket of a hostname, 0 to BUCKETS - 1; the same for every process and release."""
    return zlib.crc32(hostname.encode("ascii")) % BUCKETS


def host_key(hostname: str) -> str:
    """The key of a hostname's document."""
    return f"gw:{{h{bucket_of(hostname)}}}:host:{hostname}"


def hostname_in(document_key: str) -> str:
    """The hostname of a document's key, as `host_key` made it."""
    return document_key.partition(":host:")[2]


def due_key(bucket: int) -> str:
    """The key of a bucket's due queue."""
    return f"gw:{{h{bucket}}}:due"


def fingerprint(text: str) -> str:
    """A fixed-length name for any text: the first 96 bits of its SHA-256, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT_HEX_DIGITS]


def client_key(client_fingerprint: str) -> str:
    """The key of a client's document, by `fingerprint(client_id)`."""
    return f"gw:{{c{client_fingerprint}}}:client"


def client_holdings_key(client_fingerprint: str) -> str:
    """The key of a client's index of hostnames: all it holds, at times a little more."""
    return f"gw:{{c{client_fingerprint}}}:holdings"


def account_key(directory_url: str) -> str:
    """The key of the ACME account used at one directory."""
    return f"gw:account:{fingerprint(directory_url)}"


def ledger_index_key(directory_url: str) -> str:
    """The key of the index of all that the ledger of one directory's account holds."""
    return ledger_key(directory_url, "ledger")


def ledger_key(directory_url: str, kind: str, subject: str = "") -> str:
    """The key of one figure or hold of a directory's account."""
    key = f"gw:{{a{fingerprint(directory_url)}}}:{kind}"
    return f"{key}:{subject}" if subject else key


def in_ledger_key(key: str) -> tuple[str, str]:
    """The kind and the subject of a key, as `ledger_key` made it."""
    kind, _, subject = key.partition("}:")[2].partition(":")
    return kind, subject

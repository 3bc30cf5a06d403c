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
| `gw:{h<bucket>}:names` | sorted set: hostnames with a document, score 0, so by name | for ever |
| `gw:{c<fingerprint>}:client` | hash: a client's policy and credentials | until it is removed |
| `gw:{c<fingerprint>}:holdings` | sorted set: hostname, score = epoch ms of its entry | as above |
| `gw:{c<fingerprint>}:taking` | sorted set: what calls take, with a quota, in order | the call |
| `gw:{c<fingerprint>}:calls` | epoch µs when its rate of calls is whole again | until then |
| `gw:{c<fingerprint>}:uses` | hash: credential id, epoch ms of its last use | as its client |
| `gw:clients` | set of client ids, for listing | for ever |
| `gw:untold` | hash: credentials whose tokens were not shown, and their clients | until they are |
| `gw:claims` | set of claimed hostnames, for listing | for ever |
| `gw:keyring` | hash: a value that the right keyring opens | for ever |
| `gw:schema` | hash: the form of all this, see `store.schema_version` | for ever |
| `gw:account:<fingerprint>` | hash: an ACME account, its key (and a next one) sealed | for ever |
| `gw:census:2` | JSON: what was last counted over all hostnames | a week |
| `gw:census-turn:2` | a mark: somebody has counted, or does | until it is worth counting again |
| `gw:{a<fingerprint>}:ledger` | sorted set: the keys below, score = when they end | as they |
| `gw:{a<fingerprint>}:<limit>:<subject>` | epoch ms when a figure is unused again | until then |
| `gw:{a<fingerprint>}:hold-<reach>:<subject>` | JSON: a CA's "come back later" | until that time |
| `gw:{a<fingerprint>}:suspended` | JSON: why and until when an authority is skipped | until then |
| `gw:page-session:<digest>` | JSON: who is logged in, see `http.page.sessions` | 1 h unused |
| `gw:page-notice:<digest>:<path>` | list: what a session's next page there tells | a minute |
| `gw:page-form:<digest>:<form>` | a mark: that form was sent | 12 h |
| `gw:{trail}:audit` | stream: the audit trail, see `store.trail` | for ever, bounded |
| `gw:{trail}:notable` | stream: those that an operator should see, see `store.notable` | as above |
| `gw:{trail}:conflicts` | stream: those that tell of a conflict | as above |
| `gw:{trail}:day:<yyyy-mm-dd>` | hash: how many of some sorts that day (UTC) had | 100 days |
| `gw:{trail}:writer:<id>` | number of the last entry that a writer has in it | an hour |
| `gw:{trail<bucket>}:handed:<issuance>:<credential>` | id of that entry | the certificate's |

Called by whoever reads or writes Redis; knows no domain rule.
"""

from __future__ import annotations

import hashlib
import zlib
from functools import cache

BUCKETS = 128
"""How many slots hostnames spread over. Part of the stored form: changing it moves every key."""

CLIENTS_KEY = "gw:clients"
CLAIMS_KEY = "gw:claims"
UNTOLD_KEY = "gw:untold"
KEYRING_KEY = "gw:keyring"
AUDIT_KEY = "gw:{trail}:audit"
NOTABLE_KEY = "gw:{trail}:notable"
CONFLICTS_KEY = "gw:{trail}:conflicts"
SCHEMA_KEY = "gw:schema"
ALL_KEYS = "gw:*"
"""The pattern of everything that the gateway keeps."""
CENSUS_KEY = "gw:census:2"
CENSUS_TURN_KEY = "gw:census-turn:2"
"""With the form of the census: releases that count otherwise, side by side, each have their own."""
PROBE_KEYS = tuple(f"gw:{{h{bucket}}}:probe" for bucket in range(0, BUCKETS, 16))
"""Never there: whether they could be set tells whether writes are taken (`Store`)."""
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


def is_host_key(key: str) -> bool:
    """Whether the gateway itself could have written a key that looks like a document's."""
    return key.isascii() and key == host_key(hostname_in(key))


def handed_key(hostname: str, issuance_id: str, credential_id: str) -> str:
    """The key that tells whether a credential was given the private key of an issuance.

    Spread by the bucket of its hostname.
    """
    return f"gw:{{trail{bucket_of(hostname)}}}:handed:{issuance_id}:{credential_id}"


def due_key(bucket: int) -> str:
    """The key of a bucket's due queue."""
    return f"gw:{{h{bucket}}}:due"


def names_key(bucket: int) -> str:
    """The key of the list of a bucket's hostnames, see `store.name_index`."""
    return f"gw:{{h{bucket}}}:names"


def fingerprint(text: str) -> str:
    """A fixed-length name for any text: the first 96 bits of its SHA-256, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT_HEX_DIGITS]


def client_key(client_fingerprint: str) -> str:
    """The key of a client's document, by `fingerprint(client_id)`."""
    return f"gw:{{c{client_fingerprint}}}:client"


def client_holdings_key(client_fingerprint: str) -> str:
    """The key of a client's index of hostnames: all it holds, at times a little more."""
    return f"gw:{{c{client_fingerprint}}}:holdings"


def client_taking_key(client_fingerprint: str) -> str:
    """The key of what a client with a quota is taking right now."""
    return f"gw:{{c{client_fingerprint}}}:taking"


def client_calls_key(client_fingerprint: str) -> str:
    """The key of a client's rate of calls."""
    return f"gw:{{c{client_fingerprint}}}:calls"


def client_uses_key(client_fingerprint: str) -> str:
    """The key of when each credential of a client was last used."""
    return f"gw:{{c{client_fingerprint}}}:uses"


def audit_day_key(day: str) -> str:
    """The key of what a day's audit entries come to, by its date (ISO 8601, UTC)."""
    return f"gw:{{trail}}:day:{day}"


def audit_writer_key(writer_id: str) -> str:
    """The key of how far one writer's audit entries are in the trail."""
    return f"gw:{{trail}}:writer:{writer_id}"


def page_session_key(session_name: str) -> str:
    """The key of a session of the operator's page, by the SHA-256 of its id."""
    return f"gw:page-session:{session_name}"


def page_notice_key(session_name: str, path: str) -> str:
    """The key of what the page at this path tells next, in a session."""
    return f"gw:page-notice:{session_name}:{fingerprint(path)}"


def page_form_key(session_name: str, form_id: str) -> str:
    """The key that tells whether a form of a session was sent."""
    return f"gw:page-form:{session_name}:{form_id}"


def account_key(directory_url: str) -> str:
    """The key of the ACME account used at one directory."""
    return f"gw:account:{fingerprint(directory_url)}"


def ledger_index_key(directory_url: str) -> str:
    """The key of the index of all that the ledger of one directory's account holds."""
    return ledger_key(directory_url, "ledger")


def ledger_key(directory_url: str, kind: str, subject: str = "") -> str:
    """The key of one figure or hold of a directory's account."""
    key = f"gw:{{a{_directory(directory_url)}}}:{kind}"
    return f"{key}:{subject}" if subject else key


@cache
def _directory(directory_url: str) -> str:
    """Its fingerprint, made once: there are few, and one decision of a ledger has ten keys."""
    return fingerprint(directory_url)


def in_ledger_key(key: str) -> tuple[str, str]:
    """The kind and the subject of a key, as `ledger_key` made it."""
    kind, _, subject = key.partition("}:")[2].partition(":")
    return kind, subject

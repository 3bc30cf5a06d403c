"""The text of the first `gateway.toml`: every key once, the ones most people keep as they are.

Written for somebody who reads it from top to bottom before the first start. A line that begins with
`#` and no space is a setting to take over by removing the `#`: with all of them removed the file is
valid, too (tests see to it). Called by `cli.init`.
"""

from typing import Final

_STARTER: Final = """\
# Configuration of the gateway. docs/configuration.md explains every key.
#
# Lines with # and a space explain. Lines with # and no space are settings: remove the # and adapt.
# Relative paths start at this file's folder. Every secret can also be given as the path of a
# file (secret_file instead of secret), and every setting as an environment variable
# (GATEWAY_HTTP__LISTEN is listen in [http]).
#
# See what is wrong, before a start:   gateway check --config gateway.toml
# Start:                               gateway serve --config gateway.toml

# Where the gateway keeps what is its own; made at the first start.
state_dir = "state"

# Seals every private key that lies in Redis. Back it up: without it they are lost.
keyring_file = "keyring"

[admin]
# SHA-256 of the admin token, in hex. Who has the token provisions clients.
token_sha256 = "{token_sha256}"

[http]
listen = "127.0.0.1:8053"
# "self": the certificate of tls_hostname, issued and renewed by the gateway itself. "files": those
# below, taken anew when they change. "off": plain HTTP, for this machine alone.
#tls = "self"
#tls_hostname = "gateway.example.org"
#certificate_file = "tls.pem"
#key_file = "tls.key"
# PEM: only clients with a certificate of this authority get in; their token is needed still.
#client_ca_file = "clients.pem"
# Plain HTTP for other machines, where a proxy with TLS is in front.
allow_plain_http = false
# How many connections there may be, in all and from one address.
connections = 2048
connections_per_address = 512
# Proxies in front, whose X-Forwarded-For says who calls.
#trusted_proxies = ["192.0.2.10", "10.0.0.0/8"]

[redis]
# "embedded": a Redis of its own on a socket in state_dir. Several machines share one by a URL such
# as "redis://redis.example.net:6379/0"; it should have appendonly yes and appendfsync always.
url = "embedded"
# How many replicas each write waits for; without this line one, behind Sentinels or in a Cluster.
#replicas = 0

[log]
# debug, info, warning or error
level = "info"
# console (for people) or json (for programs)
format = "console"

[metrics]
# Figures for Prometheus at /metrics of this address, in plain HTTP.
#listen = "127.0.0.1:9153"
allow_beyond_loopback = false
# How many seconds after all hostnames were counted they are counted again.
census_seconds = 60

[page]
# Whether /operator of the listener is a web page for the operator. Left out: where http.listen is a
# loopback address, and no http.trusted_proxies are named.
#enabled = true

[traces]
# Where an OpenTelemetry collector takes traces (OTLP over HTTP); without this line there are none.
#endpoint = "http://127.0.0.1:4318"
service_name = "gateway"
# The share of calls, and of the worker's turns, that is traced.
sample = 1.0
# A file with headers that the collector wants, one a line: Authorization: Bearer ...
#headers_file = "trace-headers"
# PEM file, for a collector whose HTTPS certificate the system does not know.
#ca_bundle = "collector.pem"

[audit]
# About how many entries of the audit trail are kept in Redis, the newest; 0 keeps none.
entries = 100000

# One [[zones]] table for each zone that the gateway may write to. At the DNS server, allow the key
# to update and to query the zone.
#[[zones]]
#name = "example.org"
# Host, or host:port: the server that takes updates (RFC 2136). Several in brackets, the preferred
# one first; all must answer for the same zone data at any time.
#primary = "192.0.2.53"
# The servers that must know a challenge before the authority is told; without this line those of
# the zone's NS RRset, at nameserver_port.
#servers = ["192.0.2.53", "198.51.100.53"]
#nameserver_port = 53
# After so many seconds a challenge goes on without servers that do not answer at all; without this
# line it waits for them.
#silent_server_seconds = 300
# What becomes of a certificate for a host that resolves through a wildcard only, which a challenge
# record ends as long as it is there: "refuse" it, or "interrupt" the host.
#wildcard_hosts = "refuse"

#[zones.tsig]
# As in the server's configuration. `tsig-keygen gateway` makes a key.
#name = "gateway"
# hmac-sha256, hmac-sha384 or hmac-sha512
#algorithm = "hmac-sha256"
# A file with nothing but the base64 secret, readable by the gateway alone.
#secret_file = "tsig-secret"

# One [[acme]] table for each certificate authority, the preferred one first; the next one issues
# when it cannot be reached or refuses. Without any, certificates are off.
#[[acme]]
#directory = "https://acme-v02.api.letsencrypt.org/directory"
# What commands and messages call it; without this line, by the directory's host.
#name = "letsencrypt"
# Where the authority writes to when something is wrong.
#contact = ["mailto:hostmaster@example.org"]
# Where it has several: the profile to order, and the root that the chain should lead to.
#profile = "shortlived"
#preferred_chain = "ISRG Root X1"
# Others than the directory's scheme, host and port that the authority's URLs may have.
#origins = ["https://files.ca.example.org"]
# PEM file, for an authority whose own HTTPS certificate the system does not know.
#ca_bundle = "authority.pem"
# ecdsa-p256, ecdsa-p384, rsa-2048, rsa-3072 or rsa-4096
#key_type = "ecdsa-p256"
# Renew after this share of a certificate's lifetime, where the authority names no time (ARI).
#renew_at = 0.66

# For authorities that want an account of theirs (external account binding).
#[acme.eab]
#key_id = "key-1"
#hmac_key_file = "eab-hmac-key"

# How much the authority may be asked for; 0 is no limit. These are Let's Encrypt's figures.
#[acme.budget]
#orders_per_3_hours = 300
#certificates_per_domain_per_week = 50
#certificates_per_hostname_per_week = 5
#failed_validations_per_hour = 5
# Whether renewals count in the first two, and which share of those two new names leave to them.
#renewals_are_counted = false
#reserved_for_renewals = 0.2
# The most that one client's new names take of the first two, while there are several clients.
#client_share = 0.5

[worker]
# Whether `gateway serve` issues and renews as well; `gateway worker` does nothing else.
enabled = true
# How many issuances move at once.
concurrency = 32

# 0 is no limit. The first three are for each client, in all processes together.
[limits]
calls_per_minute = 1200
# How many hostnames it may hold with a record, and how many with a certificate.
records = 0
certificates = 0
# Calls with a wrong token and what is no call at all: of one address, and of all of them together.
unauthenticated_per_minute = 60
unauthenticated_per_second = 200
# How many calls may be under way in one process, of all and with one token.
concurrent_calls = 512
concurrent_calls_per_credential = 64

# A client's own limits, by its id.
#[limits.clients."cluster-a"]
#calls_per_minute = 6000
#records = 500
"""


def starter_text(admin_token_sha256: str) -> str:
    """The file's text with the digest of a fresh admin token."""
    return _STARTER.format(token_sha256=admin_token_sha256)

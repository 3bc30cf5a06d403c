"""`gateway clients apply` with a file that can't be used, and over what can't be read."""

import json

import pytest

from gateway.store.keys import client_key, fingerprint, host_key
from tests.integration.keeping.applying import Applier, claim, client
from tests.integration.keeping.redises import connection


def test_every_fault_of_a_file_is_told_and_nothing_is_done(applier: Applier) -> None:
    wrong = applier.run(client("a", "*") + client("a") + claim("X"), "--yes")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert [line.split(": ", 2)[1] for line in wrong.stderr.splitlines()] == [
        'clients[0] ("a")',
        "claims[0]",
    ]
    assert applier.clients() == {}


def test_what_cannot_be_read_is_named_and_hides_nothing_else(applier: Applier) -> None:
    """A newer release has written it, or somebody has altered it."""
    applier.applied(client("a") + client("b") + claim("x.example.com") + claim("y.example.com"))
    odd = client_key(fingerprint("a")), host_key("x.example.com")
    with connection(applier.url) as redis:
        redis.hset(odd[0], "client", json.dumps({"clientId": "a", "policy": []}))
        redis.hset(odd[1], "claim", json.dumps({"since": "today"}))
        redis.set(client_key(fingerprint("c")), "no hash")
        redis.sadd("gw:clients", "c", b"\xff")
        redis.sadd("gw:claims", b"\xff")
        before = [redis.hgetall(key) for key in odd]
    keeper, url = applier.keeper, applier.url
    listed = keeper.run(url, "clients", "list")
    assert listed.stdout.startswith("b  (t")
    assert listed.stdout.count("\n") == 1
    assert 'the client "a" is not readable by this release.' in listed.stderr
    assert listed.stderr.count("\n") == 3
    claims = keeper.run(url, "claims", "list")
    assert claims.stdout.startswith("y.example.com  since 20")
    assert "of x.example.com is not readable by this release.\n" in claims.stderr
    shown = keeper.run(url, "clients", "show", "a")
    assert (shown.returncode, shown.stderr.count("\n")) == (1, 1)
    assert "not readable" in shown.stderr
    assert keeper.run(url, "clients", "show", "b").returncode == 0
    explained = keeper.run(url, "explain", "b.example.com")
    assert 'the client "a" is not readable by this release.' in explained.stderr
    again = keeper.run(url, "claims", "add", "x.example.com")
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "of x.example.com is not readable" in again.stderr

    text = client("a") + client("d") + claim("x.example.com", "new") + claim("z.example.com")
    applied = applier.run(text, "--yes", "--prune")
    assert applied.returncode == 1
    assert 'the client "a" is not readable by this release: it is left alone.' in applied.stderr
    assert "of x.example.com is not readable by this release: it is left" in applied.stderr
    with connection(url) as redis:
        assert [redis.hgetall(key) for key in odd] == before
    assert keeper.run(url, "clients", "list").stdout.startswith("d  (t")
    assert keeper.run(url, "claims", "list").stdout.startswith("z.example.com")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a = " + b"9" * 5_000, "is not TOML"),
        (b"[[clients]]\nid = " + b"9" * 4_000, "id must be text"),
        (b"\xff", "can't be read: it is not UTF-8."),
        (None, "can't be read: Is a directory."),
    ],
)
def test_file_that_cannot_be_used_is_told_in_a_sentence(
    applier: Applier, content: bytes | None, told: str
) -> None:
    if content is None:
        applier.file.mkdir()
    else:
        applier.file.write_bytes(content)
    refused = applier.keeper.run(applier.url, "clients", "apply", applier.file, "--yes")
    assert refused.returncode == 2
    assert told in refused.stderr
    assert "fault of the gateway" not in refused.stderr

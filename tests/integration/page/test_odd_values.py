"""One odd value in Redis, whoever put it there, is a line that says so, and stops nothing else."""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from gateway.store import keys
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.making import make
from tests.integration.page.planting import plant
from tests.integration.service.calling import Ownership, World
from tests.lab.lab import Lab

NOT_READABLE = "not readable by this release"
HALF = "\ud83d"
"""Half of a pair of UTF-16: JSON may have it, and UTF-8 does not."""

LONG = "\x01" * 1_000_000
MOST_SHOWN = 100_000
ENTRIES = 5
"""The characters of a page that shows some long texts: each is cut to thousands."""

ODD_FIELDS = [
    ("holder", {}),
    ("holder", {"clientId": 5, "appId": "relay"}),
    ("holder", {"clientId": ["a"], "appId": "relay"}),
    ("holder", {"clientId": HALF, "appId": "relay"}),
    ("holder", {"clientId": "a", "appId": HALF}),
    ("holder", {"clientId": "a", "appId": None}),
    ("lease", {}),
    ("lease", {"worker": "w", "fence": 1, "untilMs": "soon"}),
    ("claim", {"sinceMs": "long ago", "note": "n"}),
    ("record", {"type": HALF}),
    ("issuance", {"state": "none such"}),
    ("debts", [5]),
]
"""Values of a document's fields that no release has written."""

GENERAL_PAGES = ("/operator", "/operator/hostnames", "/operator/clients", "/operator/audit")


@pytest.fixture
def connection(page_lab: Lab) -> Iterator[Any]:
    with redis.Redis.from_url(page_lab.redis.url, decode_responses=True) as connection:
        yield connection


@pytest.fixture
def held(world: World) -> Ownership:
    ownership = world.ownership()
    ownership.publish("198.51.100.7")
    return ownership


def pages_of(browser: PlainBrowser, hostname: str) -> list[Html]:
    """All pages that read the hostname's document: each must be shown."""
    paths = (f"/operator/hostnames?prefix={hostname}", f"/operator/hostnames/{hostname}")
    return [browser.page(path) for path in (*paths, "/operator")]


@pytest.mark.parametrize(("field", "value"), ODD_FIELDS)
def test_document_that_nobody_can_read_is_a_line_that_says_so(
    page_lab: Lab, browser: PlainBrowser, held: Ownership, field: str, value: object
) -> None:
    plant(page_lab, held.hostname, field, json.dumps(value))
    listed, own, _ = pages_of(browser, held.hostname)
    assert NOT_READABLE in listed.text
    assert NOT_READABLE in own.text


@pytest.mark.parametrize("text", ["{", "[" * 5_000, '"\\ud800', "\udcff", "NaN", "1e999", "null"])
def test_field_that_is_no_json_stops_no_page(
    page_lab: Lab, browser: PlainBrowser, held: Ownership, text: str
) -> None:
    raw = text.encode(errors="surrogateescape")
    with redis.Redis.from_url(page_lab.redis.url) as connection:
        (key,) = connection.scan_iter(match=f"*:host:{held.hostname}")
        connection.hset(key, "holder", raw)
    pages_of(browser, held.hostname)


def test_document_of_another_type_is_a_line_that_says_so(
    browser: PlainBrowser, held: Ownership, connection: Any
) -> None:
    (key,) = connection.scan_iter(match=f"*:host:{held.hostname}")
    connection.delete(key)
    connection.set(key, "something else")
    try:
        listed, own, _ = pages_of(browser, held.hostname)
        assert NOT_READABLE in listed.text
        assert NOT_READABLE in own.text
    finally:
        connection.delete(key)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda told: {**told, "clientType": HALF},
        lambda told: {**told, "hostnamePatterns": [HALF, "*.example.test"]},
        lambda told: {**told, "policyGeneration": "7"},
        lambda told: {**told, "credentials": [None]},
        lambda told: {**told, "credentials": [{**told["credentials"][0], "createdAtMs": -1}]},
        lambda _: None,
        lambda _: [],
    ],
)
def test_client_that_nobody_can_read_stops_no_other_page(
    browser: PlainBrowser,
    connection: Any,
    spoil: Callable[[dict[str, Any]], object],
) -> None:
    client_id = f"odd-{secrets.token_hex(6)}"
    make(browser, client_id)
    key = keys.client_key(keys.fingerprint(client_id))
    told = json.loads(connection.hget(key, "client"))
    connection.hset(key, "client", json.dumps(spoil(told)))
    try:
        assert client_id in browser.page(f"/operator/clients?prefix={client_id}").text
        assert browser.get(f"/operator/clients/{client_id}").status_code in {200, 500}
        assert "incident" not in browser.get(f"/operator/clients/{client_id}").text
        for path in GENERAL_PAGES:
            browser.page(path)
    finally:
        connection.hset(key, "client", json.dumps(told))


@pytest.mark.parametrize("member", ["é", "\udcff", "x" * 200_000, "a b", ""])
def test_odd_member_of_the_clients_stops_no_page(
    page_lab: Lab, browser: PlainBrowser, member: str
) -> None:
    raw = member.encode(errors="surrogateescape")
    with redis.Redis.from_url(page_lab.redis.url) as connection:
        connection.sadd(keys.CLIENTS_KEY, raw)
        try:
            for path in GENERAL_PAGES:
                browser.page(path)
        finally:
            connection.srem(keys.CLIENTS_KEY, raw)


@pytest.mark.parametrize("bond", [HALF, 5, None])
def test_session_that_somebody_altered_is_none(
    browser: PlainBrowser, connection: Any, bond: object
) -> None:
    (key,) = [
        each
        for each in connection.scan_iter(match="gw:page-session:*")
        if each == keys.page_session_key(_sha256(browser.cookie or ""))
    ]
    told = json.loads(connection.get(key))
    connection.set(key, json.dumps({**told, "bond": bond}), keepttl=True)
    answer = browser.get("/operator/clients")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/operator/login?next=%2Foperator%2Fclients&ended=session",
    )


def test_session_of_another_type_is_none(browser: PlainBrowser, connection: Any) -> None:
    key = keys.page_session_key(_sha256(browser.cookie or ""))
    connection.delete(key)
    connection.rpush(key, "something else")
    assert browser.get("/operator/clients").status_code == 303
    connection.delete(key)


ODD_ENTRIES = [
    {},
    {"at": 1, "who": "worker", "what": "certificate-failed", "outcome": "failed"},
    {"at": 1, "who": "worker", "what": "certificate-failed", "outcome": "failed", "hostname": 5},
    {"at": 1, "who": "worker", "what": "certificate-failed", "outcome": "failed", "hostname": HALF},
    {"at": 1, "who": "worker", "what": "certificate-failed", "outcome": "failed", "hostname": {}},
    {"at": "x", "who": 1, "what": ["record-sync"], "outcome": {"a": 1}, "hostname": {}},
    {
        **{"at": 1, "who": HALF, "what": "record-sync", "outcome": "external-conflict"},
        **{"hostname": "a.example.test", "appId": HALF, "after": 5, "detail": [HALF]},
    },
    {"at": 10**30, "who": "a", "what": "b", "outcome": "c", "clientId": HALF, "hostname": None},
    "text",
    None,
]


@pytest.mark.parametrize("stream", ["gw:{trail}:audit", "gw:{trail}:notable"])
@pytest.mark.parametrize("entry", ODD_ENTRIES)
def test_odd_entry_of_the_trail_stops_no_page(
    browser: PlainBrowser, connection: Any, stream: str, entry: object
) -> None:
    place = connection.xadd(stream, {"id": secrets.token_hex(8), "entry": json.dumps(entry)})
    try:
        for path in GENERAL_PAGES:
            browser.page(path)
    finally:
        connection.xdel(stream, place)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("claim", {"sinceMs": 1, "note": LONG}),
        ("holder", {"clientId": LONG, "appId": LONG}),
        ("issuance", {"state": LONG}),
    ],
)
def test_long_text_of_a_document_is_cut(
    page_lab: Lab, browser: PlainBrowser, held: Ownership, field: str, value: object
) -> None:
    plant(page_lab, held.hostname, field, json.dumps(value))
    for page in pages_of(browser, held.hostname):
        assert len(page.source) < MOST_SHOWN


def test_long_entries_of_the_trail_are_cut(browser: PlainBrowser, connection: Any) -> None:
    told = {"at": 1, "who": "worker", "what": "record-sync", "outcome": "external-conflict"}
    names = ("hostname", "clientId", "appId", "before", "after", "detail", "name", "remote")
    entry = json.dumps({**told, **dict.fromkeys(names, LONG[:20_000])})
    places = []
    for _ in range(ENTRIES):
        fields = {"id": secrets.token_hex(8), "entry": entry}
        streams = ("gw:{trail}:audit", "gw:{trail}:notable")
        places += [(stream, connection.xadd(stream, fields)) for stream in streams]
    try:
        shown = browser.page("/operator/audit")
        assert "and 15904 more characters" in shown.text
        assert len(shown.source) < ENTRIES * len(names) * MOST_SHOWN
        assert len(browser.page("/operator").source) < ENTRIES * MOST_SHOWN
    finally:
        for stream, place in places:
            connection.xdel(stream, place)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

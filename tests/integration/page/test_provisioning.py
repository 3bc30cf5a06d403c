"""Clients made on the page, given another policy, and deprived of what they had."""

import json
import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.http.page.client_paths import client_path
from gateway.store.connection import Store
from gateway.store.documents import Change, Documents, Holder
from gateway.store.holdings_index import HoldingsIndex
from tests.integration.dns.hand import Hand
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.page.making import NEW, TOKEN, make, notice_of, shown
from tests.integration.service.calling import CONTEXT, Caller, World
from tests.integration.service.inside import stored
from tests.integration.service.test_commands import ensure, gateway
from tests.integration.service.trailing import told_of_client, trail, who
from tests.lab.lab import Lab

ADDRESS = "198.51.100.5"


@pytest.fixture
def client_id() -> str:
    return f"page-{secrets.token_hex(6)}"


def test_client_made_by_the_page_may_call_at_once(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    token = make(browser, client_id, patterns="*.example.test\r\nwww.example.test\r\n")
    context = Caller(page_lab.config.url, token).call(CONTEXT)["context"]
    assert context["clientId"] == client_id
    assert context["hostnamePatterns"] == ["*.example.test", "www.example.test"]
    (entry,) = told_of_client(page_lab, client_id, lambda found: len(found) == 1)
    assert (entry["who"], entry["what"], entry["outcome"]) == ("admin", "client-ensure", "created")
    assert entry["remote"] == "127.0.0.1"
    assert entry["requestId"]


def test_client_made_by_the_page_is_as_one_made_by_command(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    make(
        browser,
        client_id,
        patterns="*.example.test",
        prefixes="198.51.100.0/24",
        capabilities=["syncDnsRecords", "readCertificates"],
    )
    other = f"{client_id}-2"
    capabilities = ("--capability", "readCertificates", "--capability", "syncDnsRecords")
    options = ("--type", "cloudly", "--pattern", "*.example.test", "--allow", "198.51.100.0/24")
    made = gateway(page_lab, "clients", "ensure", other, *options, *capabilities)
    assert made.returncode == 0, made.stderr
    told = []
    for each in (client_id, other):
        (entry,) = told_of_client(page_lab, each, lambda found: len(found) == 1)
        policy = {**shown(page_lab, each), "credentials": None, "clientId": None}
        told.append((policy, entry["after"], entry["detail"], entry["outcome"]))
    assert told[0] == told[1]


def test_token_is_shown_once_and_kept_nowhere(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    fields = {"client_id": client_id, "client_type": "cloudly", "patterns": "*.example.test"}
    form = Html(browser.submit(NEW, **fields).text).form()
    answer = browser.send(form, NEW, step="do")
    (token,) = TOKEN.findall(answer.text)
    (told,) = Html(answer.text).all("p", class_="notice")
    assert told.text == f"The client {client_id} is made."
    assert answer.headers["cache-control"] == "no-store"
    # A browser that loads the answer again sends the form again.
    again = browser.send(form, NEW, step="do")
    assert again.status_code == 409
    assert "sent already" in Html(again.text).text
    assert "its token is live, and shown to nobody again" in Html(again.text).text
    credentials = shown(page_lab, client_id)["credentials"]
    assert isinstance(credentials, list)
    assert len(credentials) == 1
    secret = token.split("_", 2)[2]
    told_of_client(page_lab, client_id, lambda found: len(found) == 1)
    appended = b"".join(each.read_bytes() for each in page_lab.folder.glob("redis/**/*.aof"))
    logs = b"".join(each.read_bytes() for each in page_lab.folder.glob("gateway/*.log"))
    assert client_id.encode() in appended
    assert b"client provisioned" in logs
    everything = appended + logs + json.dumps(trail(page_lab)).encode()
    for path in (client_path(client_id), "/operator/clients", "/operator/audit", "/operator"):
        everything += browser.get(path).content
    assert secret.encode() not in everything


def test_pattern_in_no_configured_zone_is_remarked_and_taken_all_the_same(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    fields = {"client_id": client_id, "client_type": "cloudly"}
    patterns = "*.example.test\n*.elsewhere.invalid"
    review = Html(browser.submit(NEW, **fields, patterns=patterns).text)
    (remark,) = (each.text for each in review.all("p", class_="remark") if "zone" in each.text)
    assert "*.elsewhere.invalid" in remark
    assert "*.example.test" not in remark
    assert browser.send(review.form(), NEW, step="do").status_code == 200
    assert shown(page_lab, client_id)["policyGeneration"] == 1


def test_revoked_client_still_tells_when_it_was_used_and_is_not_revoked_again(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    token, path = make(browser, client_id), client_path(client_id)
    (row,) = (each.text for each in browser.page(path).all("tr") if "live" in each.text)
    assert "no use noted" in row
    Caller(page_lab.config.url, token).call(CONTEXT)
    (row,) = (each.text for each in browser.page(path).all("tr") if "live" in each.text)
    assert "no use noted" not in row
    assert browser.submit(f"{path}/revoke", typed=client_id).status_code == 303
    page = browser.page(path)
    (row,) = (each.text for each in page.all("tr") if "revoked or replaced" in each.text)
    assert "ago" in row
    assert "Revoke" not in page.links
    assert "It has none that is live" in page.text
    assert page.links["The audit trail"] == f"/operator/audit?client={client_id}"
    listed = browser.page(f"/operator/clients?prefix={client_id}")
    assert "no use noted" not in listed.text


def test_rotation_keeps_the_present_token_for_the_overlap(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    former = Caller(page_lab.config.url, make(browser, client_id))
    path = client_path(client_id, "rotate")
    form = browser.page(path).form()
    answer = browser.send(form, path, overlap_seconds="600")
    fresh = former.at(page_lab.config.url)
    (fresh.token,) = TOKEN.findall(answer.text)
    assert fresh.token != former.token
    assert former.call(CONTEXT)
    assert fresh.call(CONTEXT)
    (told,) = Html(answer.text).all("p", class_="notice")
    assert told.text.startswith(f"{client_id} has a new token. The former one is accepted until ")
    again = browser.send(form, path, overlap_seconds="600")
    assert again.status_code == 409
    assert Html(again.text).links["Back to what it is about"] == client_path(client_id)
    assert "the lost one ends with the overlap of that" in Html(again.text).text
    assert browser.submit(path, overlap_seconds="0").status_code == 200
    for each in (former, fresh):
        assert each.refused(CONTEXT)["code"] == "unauthorized"
    found = told_of_client(page_lab, client_id, lambda found: len(found) == 3)
    assert [entry["what"] for entry in found[1:]] == ["client-rotate", "client-rotate"]


@pytest.mark.parametrize("typed", ["", "soon", "-1", "2592001", "9" * 400, "1.5", "٣", "1_0"])
def test_overlap_that_is_none_is_told_at_its_field(
    page_lab: Lab, browser: PlainBrowser, client_id: str, typed: str
) -> None:
    make(browser, client_id)
    answer = browser.submit(client_path(client_id, "rotate"), overlap_seconds=typed)
    assert answer.status_code == 422
    page = Html(answer.text)
    assert "from 0 to 2592000" in page.by_id("overlap_seconds-error").text
    assert ("overlap_seconds", typed) in page.form().fields
    assert shown(page_lab, client_id)["policyGeneration"] == 1


def test_faults_are_told_at_their_fields_and_what_was_typed_is_kept(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    patterns = f"{client_id}.example.test\n\n*.com\nWWW.example.test"
    answer = browser.submit(
        NEW,
        client_id=client_id,
        client_type="two words",
        patterns=patterns,
        prefixes="198.51.100.1/24",
        capabilities=["syncDnsRecords"],
    )
    assert answer.status_code == 422
    page = Html(answer.text)
    focused = [each.attributes["id"] for each in page.elements if "autofocus" in each.attributes]
    assert focused == ["client_type", "patterns", "prefixes"]  # a browser takes the first
    assert "Must be 1 to 64 characters" in page.by_id("client_type-error").text
    told = page.by_id("patterns-error").text
    assert "Line 3 must be a hostname pattern" in told
    assert 'Line 4 must be spelled "www.example.test"' in told
    assert "Line 1" in page.by_id("prefixes-error").text
    kept = page.form().fields
    assert ("patterns", patterns) in kept
    assert ("client_type", "two words") in kept
    assert ("capabilities", "syncDnsRecords") in kept
    assert gateway(page_lab, "clients", "show", client_id).returncode == 1
    # From here it goes on.
    mended = browser.send(
        page.form(), NEW, client_type="cloudly", patterns="*.example.test", prefixes=""
    )
    assert mended.status_code == 200
    assert browser.send(Html(mended.text).form(), NEW, step="do").status_code == 200


def test_review_can_be_left_to_edit_what_was_typed(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    review = browser.submit(NEW, client_id=client_id, client_type="t", patterns="*.example.test")
    form = Html(browser.send(Html(review.text).form(), NEW, step="edit").text).form()
    assert ("patterns", "*.example.test") in form.fields
    assert ("client_id", client_id) in form.fields
    assert gateway(page_lab, "clients", "show", client_id).returncode == 1


def test_client_that_there_is_already_is_not_made_again(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    typed = {"client_id": client_id, "client_type": "t", "patterns": "*.example.test"}
    form = Html(browser.submit(NEW, **typed).text).form()
    assert ensure(page_lab, client_id).returncode == 0
    before = shown(page_lab, client_id)
    answer = browser.send(form, NEW, step="do")
    assert answer.status_code == 409
    assert "such a client already" in Html(answer.text).by_id("client_id-error").text
    assert shown(page_lab, client_id) == before


def test_policy_is_in_force_for_the_next_call(
    page_lab: Lab, browser: PlainBrowser, world: World
) -> None:
    mine = world.ownership()
    client_id, _ = who(mine.caller)
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    path = client_path(client_id, "policy")
    review = browser.submit(path, patterns="other.example.test", prefixes="2001:db8::/32")
    page = Html(review.text)
    assert [each.text for each in page.all("del")] == [mine.hostname, "198.51.100.0/24"]
    assert [each.text for each in page.all("ins")] == ["other.example.test"]
    answer = browser.send(page.form(), path, step="do")
    assert answer.headers["location"] == client_path(client_id)
    assert "its generation 2" in notice_of(browser, client_path(client_id))
    refused = mine.caller.refused("getGatewayClientCertificate", ownership=mine.wire)
    assert refused["code"] == "hostname-forbidden"
    found = told_of_client(page_lab, client_id, lambda found: len(found) >= 4)
    (entry,) = [each for each in found if each["outcome"] == "changed"]
    assert entry["who"] == "admin"
    assert mine.hostname in entry["before"]
    assert "other.example.test" in entry["after"]


def test_policy_that_is_the_same_already_is_no_change(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    make(browser, client_id, patterns="*.example.test")
    page = Html(browser.submit(client_path(client_id, "policy")).text)
    assert "there is nothing to change" in page.text
    assert shown(page_lab, client_id)["policyGeneration"] == 1


def test_policy_form_of_a_client_that_has_changed_is_refused(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    make(browser, client_id)
    path = client_path(client_id, "policy")
    form = Html(browser.submit(path, patterns="*.example.test").text).form()
    assert ensure(page_lab, client_id, "--pattern", "theirs.example.test").returncode == 0
    before = shown(page_lab, client_id)
    answer = browser.send(form, path, step="do")
    assert answer.status_code == 409
    page = Html(answer.text)
    assert "The client has changed since this form was shown" in page.text
    assert ("patterns", "*.example.test") in page.form().fields
    assert shown(page_lab, client_id) == before


def test_revoked_client_is_refused_at_its_next_call_at_every_process(
    page_lab: Lab, browser: PlainBrowser, world: World
) -> None:
    mine = world.ownership()
    client_id, _ = who(mine.caller)
    mine.publish(ADDRESS)
    path = client_path(client_id, "revoke")
    wrong = browser.submit(path, typed=client_id.upper())
    assert wrong.status_code == 422
    assert "not the client's id" in Html(wrong.text).by_id("typed-error").text
    assert mine.caller.call(CONTEXT)
    assert browser.send(Html(wrong.text).form(), path, typed=client_id).status_code == 303
    for each in page_lab.gateways:
        assert mine.caller.at(each.url).refused(CONTEXT)["code"] == "unauthorized"
    assert "is refused from now on" in notice_of(browser, client_path(client_id))
    assert stored(page_lab, mine.hostname)["record"]
    assert "has no live token" in browser.page(path, status=409).text
    found = told_of_client(page_lab, client_id, lambda found: len(found) == 3)
    assert (found[-1]["who"], found[-1]["what"]) == ("admin", "client-revoke")


def test_removal_of_a_client_that_holds_something_demands_its_release(
    page_lab: Lab, browser: PlainBrowser, world: World
) -> None:
    hand = Hand.at(page_lab.bind)
    mine = world.ownership()
    client_id, _ = who(mine.caller)
    mine.publish(ADDRESS)
    path = client_path(client_id, "remove")
    assert "1 hostname" in browser.page(path).text
    refused = browser.submit(path, typed=client_id)
    assert refused.status_code == 409
    page = Html(refused.text)
    assert f"{client_id} still holds hostnames (1, such as {mine.hostname}): tick the box" in (
        page.all("p", class_="fault")[0].text
    )
    assert hand.records(mine.hostname)
    assert mine.caller.call(CONTEXT)
    answer = browser.send(page.form(), path, typed=client_id, release_holdings="yes")
    assert answer.headers["location"] == "/operator/clients", answer.text
    assert notice_of(browser, "/operator/clients") == f"{client_id} is removed."
    assert not hand.records(mine.hostname)
    assert mine.caller.refused(CONTEXT)["code"] == "unauthorized"
    browser.page(client_path(client_id), status=404)
    found = told_of_client(page_lab, client_id, lambda found: len(found) == 6)
    by_admin = [entry["what"] for entry in found if entry["who"] == "admin"]
    assert by_admin == [
        "client-ensure",
        "client-remove",
        "client-revoke",
        "record-sync",
        "client-remove",
    ]


async def test_removal_that_has_not_released_all_says_how_far_it_came_and_keeps_the_form(
    page_lab: Lab, browser: PlainBrowser, world: World
) -> None:
    mine = world.ownership()
    client_id, _ = who(mine.caller)
    mine.publish(ADDRESS)
    store = Store(page_lab.redis.url)
    # As of a zone that is configured no more: its record can't be withdrawn.
    gone = Hostname(f"{client_id}.elsewhere.example.edu")
    record = {"type": "A", "value": ADDRESS, "ttl": 300, "published": True}
    holder = Holder(ClientId(client_id), AppId("relay"))
    try:
        await Documents(store).change(gone, lambda _: Change({"holder": holder, "record": record}))
        await HoldingsIndex(store).enter(ClientId(client_id), gone, 1)
        path = client_path(client_id, "remove")
        answer = browser.submit(path, typed=client_id, release_holdings="yes")
        page = Html(answer.text)
        assert answer.status_code == 409
        assert page.all("p", class_="fault")[0].text.startswith(
            f"Released so far: 1 hostname; to go: 1. {client_id} still holds hostnames (1, such as"
        )
        kept = dict(page.form().fields)
        assert (kept["typed"], kept["release_holdings"]) == (client_id, "yes")
        wrong = Html(browser.send(page.form(), path, typed="x").text).form()
        assert dict(wrong.fields)["release_holdings"] == "yes"
        await Documents(store).change(gone, lambda _: Change({"holder": None, "record": None}))
        await HoldingsIndex(store).leave(ClientId(client_id), gone, 1)
    finally:
        await store.close()


def test_form_of_another_session_changes_no_client(
    page_lab: Lab, browser: PlainBrowser, browse: Browse, client_id: str
) -> None:
    caller = Caller(page_lab.config.url, make(browser, client_id))
    other = browse(browser.base_url)
    other.log_in(page_lab.config.admin_token)
    path = client_path(client_id, "revoke")
    form = other.page(path).form()
    assert browser.send(form, path, typed=client_id).status_code == 403
    assert caller.call(CONTEXT)


def test_form_that_is_sent_twice_at_once_makes_one_token(
    page_lab: Lab, browser: PlainBrowser, browse: Browse, client_id: str
) -> None:
    make(browser, client_id)
    path = client_path(client_id, "rotate")
    form = browser.page(path).form()
    browsers = [browse(each.base_url) for each in page_lab.gateways * 4]
    for each in browsers:
        each.client.cookies = browser.client.cookies
    with ThreadPoolExecutor(len(browsers)) as pool:
        answers = list(pool.map(lambda each: each.send(form, path), browsers))
    assert sorted(each.status_code for each in answers) == [200] + [409] * 7
    assert shown(page_lab, client_id)["policyGeneration"] == 2

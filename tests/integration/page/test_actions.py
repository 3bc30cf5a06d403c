"""Actions on a hostname, each from the page that asks to what came of it and who did it."""

import json
from collections.abc import Callable

import pytest
import redis

from gateway.store.keys import host_key
from tests.integration.dns.hand import Hand
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.service.calling import Ownership, World
from tests.integration.service.inside import at_rest, delegated_away, stored
from tests.integration.service.test_commands import gateway
from tests.integration.service.trailing import Entry, told_of, trail, who
from tests.lab.lab import Lab
from tests.lab.process import wait_until

ADDRESS = "198.51.100.5"
MARKUP = '<script>window.bad=1</script><b title="x">&amp;'


@pytest.fixture
def mine(world: World) -> Ownership:
    return world.ownership()


@pytest.fixture
def hand(page_lab: Lab) -> Hand:
    return Hand.at(page_lab.bind)


def path(mine: Ownership, act: str = "") -> str:
    return f"/operator/hostnames/{mine.hostname}" + (f"/{act}" if act else "")


def done(browser: PlainBrowser, mine: Ownership, act: str, **typed: str) -> str:
    """Confirm an action; the sentence that the hostname's page tells."""
    answer = browser.submit(path(mine, act), **typed)
    assert (answer.status_code, answer.headers["location"]) == (303, path(mine)), answer.text
    *_, notice = browser.page(path(mine)).all("p", class_="notice")
    return notice.text


def by_page(entries: list[Entry], browser: PlainBrowser) -> Entry:
    """The one entry that the page's session made."""
    (entry,) = [each for each in entries if str(each.get("name", "")).startswith("page session ")]
    assert entry["who"] == "admin"
    assert entry["remote"] == "127.0.0.1"
    assert entry["requestId"]
    assert (browser.cookie or "-") not in json.dumps(entry)
    return entry


def test_release_deletes_the_certificate_and_is_told_as_the_sessions(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    client_id, _ = who(mine.caller)
    mine.publish(ADDRESS)
    at_rest(page_lab, mine)
    asked = browser.page(path(mine, "release"))
    assert f"{client_id} for relay" in asked.text
    assert "The gateway deletes the certificate and its private key" in asked.text
    assert done(browser, mine, "release") == (
        f"The certificate of {client_id} for relay at {mine.hostname} is released."
        " Its record stays in the zone."
    )
    assert "certificate" not in stored(page_lab, mine.hostname)
    assert mine.get()["status"] == "pending"
    mine.certificate()
    found = told_of(
        page_lab,
        mine.hostname,
        ("record-sync", "managed-created"),
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
        ("certificate-release", "released"),
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
    )
    assert by_page(found, browser)["what"] == "certificate-release"


def test_withdrawal_takes_the_record_out_of_the_zone(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership, hand: Hand
) -> None:
    mine.publish(ADDRESS)
    assert hand.records(mine.hostname)
    assert ADDRESS in browser.page(path(mine, "withdraw")).text
    client_id, _ = who(mine.caller)
    assert done(browser, mine, "withdraw") == (
        f"{mine.hostname}: A {ADDRESS} of {client_id} for {mine.app_id} is taken out of the zone."
    )
    assert not hand.records(mine.hostname)
    found = told_of(
        page_lab,
        mine.hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "managed-deleted"),
    )
    assert by_page(found, browser)["before"] == f"A {ADDRESS} 300"
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_withdrawal_of_an_edited_record_says_before_and_after_what_stays(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership, hand: Hand
) -> None:
    mine.publish(ADDRESS)
    assert not browser.page(path(mine, "withdraw")).all("p", class_="remark")
    hand.update(f"delete {mine.hostname} A", f"add {mine.hostname} 300 A 203.0.113.99")
    (warning,) = browser.page(path(mine, "withdraw")).all("p", class_="remark")
    assert warning.text == (
        f"The zone has A 203.0.113.99 now, and not A {ADDRESS}: somebody else wrote that. It stays;"
        " only the marker goes."
    )
    assert done(browser, mine, "withdraw").endswith(
        "Its marker is gone; A 203.0.113.99, which somebody else wrote, is still there."
    )
    assert {each.split()[-1] for each in hand.records(mine.hostname)} == {"203.0.113.99"}


def test_withdrawal_that_the_zone_does_not_take_is_told_and_offered_again(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    form = browser.page(path(mine, "withdraw")).form()
    page_lab.bind.primary_process.stop()
    try:
        answer = browser.send(form, path(mine, "withdraw"))
    finally:
        page_lab.bind.start_primary()
    assert answer.status_code == 409
    page = Html(answer.text)
    assert "zone-unavailable" in page.all("p", class_="fault")[0].text
    assert page.form().fields != form.fields
    assert browser.send(page.form(), path(mine, "withdraw")).status_code == 303


def test_claim_holds_the_hostname_against_clients_until_it_is_taken_back(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    note = f"the web team's {MARKUP}"
    assert done(browser, mine, "claim", note=note) == f"{mine.hostname} is claimed."
    assert mine.publish(ADDRESS)["status"] == "record-conflict"
    claimed = json.loads(gateway(page_lab, "claims", "list", mine.hostname, "--json").stdout)
    assert [each["note"] for each in claimed] == [note]
    page = browser.page(path(mine, "claim"))
    assert ("note", note) in page.form().fields
    assert not [each for each in page.all("script") if each.text]
    assert not page.all("b")
    assert done(browser, mine, "unclaim") == f"{mine.hostname} is no longer claimed."
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    found = told_of(
        page_lab,
        mine.hostname,
        ("claim-add", "claimed"),
        ("record-sync", "record-conflict"),
        ("claim-remove", "removed"),
        ("record-sync", "managed-created"),
    )
    by_session = [each for each in found if each["who"] == "admin"]
    assert [each["what"] for each in by_session] == ["claim-add", "claim-remove"]


def test_note_that_is_too_long_is_told_at_its_field_and_kept(
    browser: PlainBrowser, mine: Ownership
) -> None:
    answer = browser.submit(path(mine, "claim"), note="x" * 401)
    assert answer.status_code == 422
    page = Html(answer.text)
    assert page.by_id("note-error").text == "It has more than 400 characters."
    assert ("note", "x" * 401) in page.form().fields
    assert browser.send(page.form(), path(mine, "claim"), note="short").status_code == 303


def test_failed_issuance_is_retried_and_issued(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership, hand: Hand
) -> None:
    at_rest(page_lab, mine)
    former = json.loads(stored(page_lab, mine.hostname)["certificate"])["serial"]
    with delegated_away(hand, mine.hostname):
        # What is known within a moment is told at once; else the page goes on by itself.
        told = done(browser, mine, "renew")
        assert mine.hostname in told
        wait_until(lambda: _state(page_lab, mine) in {"failed", "waiting"}, "the renewal rests")
    page = browser.page(path(mine, "retry"))
    assert "ns.elsewhere" in page.text or "zone" in page.text
    assert mine.hostname in done(browser, mine, "retry")
    wait_until(lambda: _serial(page_lab, mine) != former, "a new certificate is there")
    entries = trail(page_lab, "--hostname", mine.hostname)
    assert [each["who"] for each in entries if each["what"] == "certificate-retry"] == [
        "admin",
        "admin",
    ]


def _state(lab: Lab, mine: Ownership) -> str:
    fields = stored(lab, mine.hostname)
    return str(json.loads(fields["issuance"])["state"]) if "issuance" in fields else "none"


def _serial(lab: Lab, mine: Ownership) -> str:
    return str(json.loads(stored(lab, mine.hostname)["certificate"])["serial"])


@pytest.mark.parametrize(
    ("act", "command"),
    [
        ("release", ("holdings", "release")),
        ("withdraw", ("holdings", "withdraw")),
        ("claim", ("claims", "add")),
        ("unclaim", ("claims", "remove")),
    ],
)
def test_action_is_the_same_as_the_commands(
    page_lab: Lab, world: World, browser: PlainBrowser, act: str, command: tuple[str, ...]
) -> None:
    """Two ownerships alike, one by each hand: what is stored and what is told differ in who."""
    told, kept = [], []
    for by_command in (False, True):
        mine = world.ownership()
        client_id, _ = who(mine.caller)
        if act in {"release", "withdraw"}:
            mine.publish(ADDRESS)
            at_rest(page_lab, mine)
        elif act == "unclaim":
            assert gateway(page_lab, "claims", "add", mine.hostname).returncode == 0
        before = len(trail(page_lab, "--hostname", mine.hostname))
        if by_command:
            rest = ("--from", f"{client_id}:relay") if "holdings" in command else ()
            ran = gateway(page_lab, *command, mine.hostname, *rest)
            assert ran.returncode == 0, ran.stderr
            words = ran.stdout.strip()
        else:
            words = done(browser, mine, act)
        entry = _next_entry(page_lab, mine, before)
        told.append(_anonymous(json.dumps([words, _deed(entry)]), mine, client_id))
        kept.append(sorted(stored(page_lab, mine.hostname)))
    assert told[0] == told[1]
    assert kept[0] == kept[1]


def _next_entry(lab: Lab, mine: Ownership, before: int) -> Entry:
    found: list[Entry] = []

    def is_there() -> bool:
        found[:] = trail(lab, "--hostname", mine.hostname)
        return len(found) > before

    wait_until(is_there, "the deed is in the trail")
    return found[-1]


def _deed(entry: Entry) -> dict[str, object]:
    """What was done, without who, when and from where."""
    of_actor = {"at", "who", "name", "ofClient", "remote", "requestId", "place"}
    return {name: value for name, value in sorted(entry.items()) if name not in of_actor}


def _anonymous(text: str, mine: Ownership, client_id: str) -> str:
    return text.replace(mine.hostname, "HOSTNAME").replace(client_id, "CLIENT")


def test_form_that_is_sent_twice_is_carried_out_once(
    page_lab: Lab, browser: PlainBrowser, browse: Browse, mine: Ownership
) -> None:
    form = browser.page(path(mine, "claim")).form()
    assert browser.send(form, path(mine, "claim"), note="first").status_code == 303
    assert browser.page(path(mine)).all("p", class_="notice")
    again = browser.send(form, path(mine, "claim"), note="second")
    assert again.status_code == 409
    assert "sent already" in Html(again.text).text
    # A form is known at every process.
    other = browse(page_lab.gateways[1].base_url)
    other.client.cookies = browser.client.cookies
    assert other.send(form, path(mine, "claim"), note="third").status_code == 409
    assert done(browser, mine, "unclaim")
    found = told_of(page_lab, mine.hostname, ("claim-add", "claimed"), ("claim-remove", "removed"))
    assert found[0]["after"] == "first"


def test_form_for_what_is_there_no_more_is_refused_with_what_is_there(
    page_lab: Lab, world: World, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    form = browser.page(path(mine, "withdraw")).form()
    mine.withdraw()
    rival = world.rival(mine)
    rival.publish("198.51.100.6")
    answer = browser.send(form, path(mine, "withdraw"))
    assert answer.status_code == 409
    page = Html(answer.text)
    assert "It has changed since this page was shown, and nothing was done." in page.text
    assert f"{who(rival.caller)[0]} for relay" in page.text
    assert rival.publish("198.51.100.6")["status"] == "managed-unchanged"
    # The form below it is for what is there now.
    assert browser.send(page.form(), path(mine, "withdraw")).status_code == 303


def test_form_of_another_session_is_refused(
    page_lab: Lab, browser: PlainBrowser, browse: Browse, mine: Ownership
) -> None:
    other = browse(browser.base_url)
    other.log_in(page_lab.config.admin_token)
    form = other.page(path(mine, "claim")).form()
    answer = browser.send(form, path(mine, "claim"))
    assert answer.status_code == 403
    assert "from another session" in Html(answer.text).text
    assert gateway(page_lab, "claims", "list", mine.hostname, "--json").stdout.strip() == "[]"


def test_nothing_is_done_by_asking(page_lab: Lab, browser: PlainBrowser, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    at_rest(page_lab, mine)
    before = stored(page_lab, mine.hostname)
    for act in ("retry", "renew", "release", "withdraw", "claim", "unclaim"):
        assert browser.get(path(mine, act)).status_code in {200, 409}
    assert stored(page_lab, mine.hostname) == before


@pytest.mark.parametrize(
    ("prepare", "act", "why"),
    [
        (lambda _: None, "release", "Nobody holds"),
        (lambda _: None, "unclaim", "There is no claim on"),
        (lambda mine: mine.publish(ADDRESS), "claim", "is held by a client; release it first."),
        (lambda mine: mine.publish(ADDRESS), "release", "There is no certificate to release"),
    ],
)
def test_what_does_not_apply_says_why(
    browser: PlainBrowser,
    mine: Ownership,
    prepare: Callable[[Ownership], object],
    act: str,
    why: str,
) -> None:
    prepare(mine)
    page = browser.page(path(mine, act), status=409)
    assert why in page.all("p", class_="fault")[0].text
    assert [each.action for each in page.forms] == ["/operator/logout"]


def test_claim_of_a_hostname_that_came_to_be_held_is_refused(
    browser: PlainBrowser, mine: Ownership
) -> None:
    form = browser.page(path(mine, "claim")).form()
    mine.publish(ADDRESS)
    assert browser.send(form, path(mine, "claim"), note="late").status_code == 409
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"


@pytest.mark.parametrize("hostname", ["-", "UPPER.example.test", "%3Cscript%3E", "a..b"])
def test_what_is_no_hostname_is_no_page(browser: PlainBrowser, hostname: str) -> None:
    page = browser.page(f"/operator/hostnames/{hostname}/claim", status=404)
    assert "<script>" not in page.source.partition("<main")[2]


def test_unreadable_document_is_left_alone(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    with redis.Redis.from_url(page_lab.redis.url, decode_responses=True) as connection:
        connection.hset(host_key(mine.hostname), "record", '{"type": "NEW"}')
        before = connection.hgetall(host_key(mine.hostname))
        page = browser.page(path(mine, "withdraw"), status=500)
        assert "not readable by this release" in page.text
        assert connection.hgetall(host_key(mine.hostname)) == before

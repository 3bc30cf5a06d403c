"""One hostname's page: what is stored of it, its certificate's way, the zone, the verdict."""

import json
import re

import pytest

from gateway.contract.names import Hostname
from gateway.store.connection import Store
from gateway.store.documents import Change, Documents
from tests.integration.dns.hand import Hand
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.planting import MARKUP, count_anew, fail, plant
from tests.integration.service.calling import CONTEXT, Ownership, World
from tests.integration.service.inside import resting_while_published, stored
from tests.integration.service.test_commands import gateway
from tests.lab.lab import Lab
from tests.lab.process import wait_until

PARTS = ("zone", "verdict")


@pytest.fixture
def mine(world: World) -> Ownership:
    return world.ownership()


@pytest.fixture
def hand(page_lab: Lab) -> Hand:
    return Hand.at(page_lab.bind)


def path(mine: Ownership, more: str = "") -> str:
    return f"/operator/hostnames/{mine.hostname}{more}"


def rows(page: Html) -> dict[str, str]:
    """Names and values, as they are shown; the last of a name."""
    names = [" ".join(each.text.split()) for each in page.all("dt")]
    values = [" ".join(each.text.split()) for each in page.all("dd")]
    return dict(zip(names, values, strict=True))


def stages(page: Html) -> list[tuple[str, str]]:
    """Each stage's words and what has become of it."""
    words = [each.text for each in page.all("span", class_="stage-words")]
    return list(zip(words, (e.text for e in page.all("span", class_="stage-status")), strict=True))


def at_rest(lab: Lab, hostname: str) -> bool:
    return not stored(lab, hostname).keys() & {"issuance", "debts", "lease"}


def test_certificate_at_rest_is_shown_with_the_way_it_came(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5", ttl=600)
    mine.certificate()
    wait_until(lambda: at_rest(page_lab, mine.hostname), "the certificate rests")
    page = browser.page(path(mine))
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    certificate = json.loads(stored(page_lab, mine.hostname)["certificate"])
    shown = rows(page)
    assert shown["Holder"] == f"{client_id} for {mine.app_id}"
    assert shown["Record"] == "A 198.51.100.5, TTL 600 s published, as Redis has it"
    assert shown["Serial"] == certificate["serial"]
    assert shown["Issuer"] == certificate["issuer"]
    assert shown["Names"] == mine.hostname
    assert shown["Key"] == "ECDSA P-256"
    assert shown["Valid until"].endswith("valid")
    assert "renew the certificate" in shown["Next"]
    assert len(stages(page)) == 8
    assert {status for _, status in stages(page)} <= {"passed", "not needed"}
    assert "None is under way. The certificate came so:" in page.text
    assert page.by_id("standing").attributes["data-live"] == "5000"


def test_nothing_that_is_shown_holds_a_key(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.certificate()
    sealed = json.loads(stored(page_lab, mine.hostname)["certificate"])["sealed_key"]
    for more in ("", "/zone", "/verdict"):
        source = browser.get(path(mine, more)).text
        assert mine.hostname in source
        assert sealed not in source
        assert "PRIVATE KEY" not in source


def test_issuance_on_the_way_is_followed_stage_by_stage(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    with resting_while_published(page_lab, mine):
        page = browser.page(path(mine))
        told = ("challenge published", "challenge on all name servers")
        assert [dict(stages(page))[words] for words in told] == ["passed", "under way"]
        (current,) = page.all("li", aria_current="step")
        assert "challenge on all name servers" in current.text
        assert page.by_id("standing").attributes["data-live"] == "1000"
        challenge = json.loads(stored(page_lab, mine.hostname)["issuance"])["challenge_value"]
        assert challenge in rows(page)["Challenge"]
        assert "ask the name servers again" in rows(page)["Next"]
    wait_until(lambda: "Valid until" in rows(browser.page(path(mine))), "the certificate is shown")


def test_both_gateways_show_the_same(page_lab: Lab, browser: PlainBrowser, mine: Ownership) -> None:
    mine.publish("198.51.100.5")
    first = rows(browser.page(path(mine)))
    browser.client.base_url = page_lab.gateways[1].base_url
    assert rows(browser.page(path(mine))) == first


def test_failed_issuance_tells_the_words_of_the_authority_as_text(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.certificate()
    fail(page_lab, mine.hostname, f"{MARKUP} \N{RIGHT-TO-LEFT OVERRIDE} \x1b[31m{'x' * 4000}")
    page = browser.page(path(mine))
    (words,) = page.all("blockquote")
    assert words.text.startswith(f"issuance-failed: {MARKUP} \\u202e \\x1b[31mxxx")
    assert ("challenge published", "failed here") in stages(page)
    assert rows(page)["Orders that came to nothing"] == "3"
    assert page.links["Retry now"] == path(mine, "/retry")
    assert [each.attributes["src"] for each in page.all("script")] == ["/operator/static/page.js"]
    mine.release()


def test_times_that_no_calendar_has_make_a_document_unreadable_and_hide_nothing(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    """No call makes them: they are put into Redis by whoever may write there."""
    mine.certificate()
    fail(page_lab, mine.hostname, "no")
    sentence = f"What Redis has of {mine.hostname} is not readable by this release."
    sound = json.loads(stored(page_lab, mine.hostname)["certificate"])
    for times in (
        {"valid_until_ms": 10**17},
        {"valid_from_ms": -1},
        {"renew_at_ms": 2**62, "window_ms": [2**61, 2**60]},
    ):
        plant(page_lab, mine.hostname, "certificate", json.dumps(sound | times))
        for more in ("", "/verdict"):
            assert sentence in browser.page(path(mine, more)).text
        assert browser.page(path(mine, "/zone")).text
    assert browser.page(f"/operator/hostnames?prefix={mine.hostname}").all("table")
    count_anew(page_lab)
    assert mine.hostname in browser.page("/operator").text
    mine.release()


def test_failure_and_its_retry_come_before_all_else_and_what_destroys_comes_last(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    mine.certificate()
    fail(page_lab, mine.hostname, "CAA forbids it")
    source = browser.get(path(mine)).text
    told = [
        "Why it failed",
        "CAA forbids it",
        "The present certificate is handed out",
        path(mine, "/retry"),
        "Held by",
        "What a call would be answered",
        "What you can do",
        path(mine, "/release"),
        path(mine, "/withdraw"),
    ]
    places = [source.index(each) for each in told]
    assert places == sorted(places)
    assert source.count(path(mine, "/retry")) == 1
    mine.release()


def test_what_is_loaded_later_is_loaded_again_when_it_may_be_another(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    def marks() -> tuple[str, str]:
        page = browser.page(path(mine))
        zone, verdict = (page.by_id(name).attributes["data-load-when"] for name in PARTS)
        return zone, verdict

    nothing = marks()
    mine.publish("198.51.100.5")
    published = marks()
    assert all(before != after for before, after in zip(nothing, published, strict=True))
    assert marks() == published
    with resting_while_published(page_lab, mine):
        zone, verdict = marks()
        assert zone == published[0]
        assert verdict != published[1]
    mine.certificate()
    wait_until(lambda: marks()[1] not in {verdict, published[1]}, "the certificate changes it")


@pytest.mark.parametrize("more", ["/zone", "/verdict"])
def test_what_is_asked_outside_says_when_it_was(
    browser: PlainBrowser, mine: Ownership, more: str
) -> None:
    asked = next(
        each
        for each in browser.page(path(mine, more)).all("p", class_="ago")
        if "Asked" in each.text
    )
    assert re.fullmatch(r"Asked at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.", asked.text)


def test_deeds_are_offered_where_there_is_something_to_do(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    def offered() -> set[str]:
        links = browser.page(path(mine)).links.values()
        return {url.removeprefix(path(mine, "/")) for url in links if url.startswith(path(mine))}

    assert offered() == {"claim", "zone", "verdict"}
    mine.publish("198.51.100.5")
    assert offered() == {"withdraw", "zone", "verdict"}
    mine.certificate()
    wait_until(lambda: at_rest(page_lab, mine.hostname), "the certificate rests")
    assert offered() == {"withdraw", "release", "renew", "zone", "verdict"}


async def test_claim_is_shown_with_its_note_as_text(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    store = Store(page_lab.redis.url)
    claim = {"sinceMs": 1_700_000_000_000, "note": MARKUP}
    await Documents(store).change(Hostname(mine.hostname), lambda _: Change({"claim": claim}))
    await store.close()
    page = browser.page(path(mine))
    assert rows(page)["Claim"].startswith("an operator's, since 2023-11-14 22:13:20 UTC")
    assert rows(page)["Claim"].endswith(MARKUP)
    assert "Take the claim back" in page.links


def test_document_that_cannot_be_read_still_tells_its_holder(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    sentence = f"What Redis has of {mine.hostname} is not readable by this release."
    for field in ("issuance", "claim"):
        plant(page_lab, mine.hostname, field, json.dumps({"state": MARKUP}))
        page = browser.page(path(mine))
        assert sentence in page.text
        assert rows(page)["Client"] == client_id
    plant(page_lab, mine.hostname, "record", MARKUP)
    page = browser.page(path(mine))
    assert sentence in page.text
    assert rows(page)["Client"] == client_id


def test_hostname_of_which_nothing_is_stored_has_a_page(
    browser: PlainBrowser, mine: Ownership
) -> None:
    page = browser.page(path(mine))
    assert "Nothing is stored of it: nobody holds it." in page.text
    assert rows(page)["Holder"] == "nobody"
    assert browser.page("/operator/hostnames/a.nowhere.invalid").text.count("in no configured zone")


@pytest.mark.parametrize("name", ["UPPER.example.test", "a..b", "%3Cb%3E.example.test", "single"])
@pytest.mark.parametrize("more", ["", "/zone", "/verdict"])
def test_what_is_no_hostname_has_no_page(browser: PlainBrowser, name: str, more: str) -> None:
    page = browser.page(f"/operator/hostnames/{name}{more}", 404)
    assert "There is no such page: " in page.text
    assert "b" not in {each.tag for each in page.elements}


def test_each_server_is_shown_to_agree_until_somebody_edits_the_zone(
    browser: PlainBrowser, mine: Ownership, hand: Hand
) -> None:
    mine.publish("198.51.100.5")
    wait_until(
        lambda: (
            [
                each.text
                for each in browser.page(path(mine, "/zone")).all("span", class_="badge badge-ok")
            ]
            == ["as published"] * 4  # of each answer, and of all together
        ),
        "the secondary has it as well",
    )
    hand.update(
        f"delete {mine.hostname} A",
        f"add {mine.hostname} 300 A 192.0.2.9",
        f'add {mine.hostname} 300 TXT "<script>window.bad=1</script>" "\\027[31m"',
    )
    page = browser.page(path(mine, "/zone"))
    assert "Redis says that A 198.51.100.5 is published, TTL 300 s." in page.text
    primary = next(card for card in page.all("li", class_="card") if "primary" in card.text)
    told = " ".join(primary.text.split())
    assert "not as published" in told
    assert "192.0.2.9" in told
    (edited,) = page.all("p", class_="fault")
    assert " ".join(edited.text.split()) == (
        "not as published The zone has A 192.0.2.9, where A 198.51.100.5 was published: somebody"
        " else wrote that."
    )
    assert "put it back into the zone by hand" in page.text
    assert '"<script>window.bad=1</script>" "\\027[31m"' in told
    assert "owner marker of a key of this gateway" in told
    assert [each.attributes["src"] for each in page.all("script")] == ["/operator/static/page.js"]
    assert any("data-part" in each.attributes for each in page.all("div"))


def test_server_that_does_not_answer_is_not_said_to_have_something_else(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    page_lab.bind.secondary_process.pause()
    try:
        page = browser.page(path(mine, "/zone"))
    finally:
        page_lab.bind.secondary_process.resume()
    silent = next(card for card in page.all("li", class_="card") if "ns2" in card.text)
    badges = page.all("span", class_="badge badge-warn")
    assert [each.text for each in badges] == ["no answer"] * 2
    assert "no answer" in silent.text
    assert "not as published" not in page.text


def test_zone_is_compared_with_nothing_where_the_record_that_is_stored_cannot_be_read(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    plant(page_lab, mine.hostname, "record", json.dumps({"type": "A"}))
    page = browser.page(path(mine, "/zone"))
    assert "What Redis says is published is not known" in page.text
    assert "A 198.51.100.5" not in page.text.partition("Each server's answer")[0]


def test_zone_of_nobody_is_said_to_be_none(browser: PlainBrowser) -> None:
    page = browser.page("/operator/hostnames/a.nowhere.invalid/zone")
    assert "No configured zone holds a.nowhere.invalid." in page.text


def test_verdict_says_what_the_command_line_does(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    page = browser.page(path(mine, "/verdict"))
    told = rows(page)
    assert told["sync"].startswith("of A 198.51.100.5, TTL 300 s, would answer")
    assert "managed-unchanged" in told["sync"]
    printed = gateway(page_lab, "explain", mine.hostname).stdout
    for topic in ("asked by", "policy", "holder"):
        assert told[topic] in printed
    assert any("data-part" in each.attributes for each in page.all("div"))


def test_hostname_in_another_spelling_leads_to_its_page(
    browser: PlainBrowser, mine: Ownership
) -> None:
    for spelled in (mine.hostname.upper(), f"{mine.hostname}."):
        page = browser.page(f"/operator/hostnames/{spelled}", 404)
        assert page.links[f"The page of {mine.hostname}"] == path(mine)
    page = browser.page("/operator/hostnames/a%20b", 404)
    assert 'There is no such page: "a b" has the character " "' in page.text
    assert not [words for words in page.links if words.startswith("The page of")]

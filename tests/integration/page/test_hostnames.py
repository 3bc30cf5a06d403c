"""The list of hostnames: by prefix and by client, page after page, and what is said of nothing."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.contract.names import ClientId, Hostname
from gateway.http.page.hostnames import SCANNED
from gateway.store.connection import Store
from gateway.store.documents import Change, Documents
from gateway.store.holdings_index import HoldingsIndex
from gateway.store.keys import bucket_of, host_key, names_key
from gateway.store.name_index import NameIndex
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.planting import MARKUP, count_anew, fail, now_ms, plant
from tests.integration.service.calling import CONTEXT, Ownership, World
from tests.lab.lab import Lab

HERE = "/operator/hostnames"
AT_ONCE = 100


@pytest.fixture
def mine(world: World) -> Ownership:
    return world.ownership()


@pytest.fixture
async def lab_store(page_lab: Lab) -> AsyncIterator[Store]:
    store = Store(page_lab.redis.url)
    yield store
    await store.close()


async def claimed(store: Store, *names: str, note: str = "") -> None:
    """Hostnames with a claim, which is the least that a document holds."""
    claim = {"sinceMs": now_ms(), "note": note}
    for name in names:
        await Documents(store).change(Hostname(name), lambda _: Change({"claim": claim}))


def listed(page: Html) -> list[str]:
    """The hostnames in their order."""
    return [each.text.strip() for each in page.all("th", scope="row")]


def pages(browser: PlainBrowser, url: str | None) -> list[list[str]]:
    """The hostnames of each page, from one to the last."""
    found = []
    while url is not None:
        page = browser.page(url)
        found.append(listed(page))
        url = page.links.get("Next page")
    return found


async def test_hostnames_are_listed_in_order_fifty_a_page(
    browser: PlainBrowser, lab_store: Store, fresh_label: str
) -> None:
    names = [f"{fresh_label}-{number:03}.example.test" for number in range(103)]
    await claimed(lab_store, *reversed(names))
    found = pages(browser, f"{HERE}?prefix={fresh_label}")
    assert [name for page in found for name in page] == names
    assert [len(page) for page in found] == [50, 50, 3]
    second = browser.page(browser.page(f"{HERE}?prefix={fresh_label}").links["Next page"])
    assert second.links["First page"] == f"{HERE}?prefix={fresh_label}"


async def test_line_tells_holder_record_certificate_and_claim(
    browser: PlainBrowser, mine: Ownership, lab_store: Store, fresh_label: str
) -> None:
    mine.publish("198.51.100.5")
    mine.certificate()
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    (row,) = browser.page(f"{HERE}?prefix={mine.hostname}").all("tr")[1:]
    text = " ".join(row.text.split())
    for words in (client_id, "relay", "A 198.51.100.5, TTL 300 s", "days left"):
        assert words in text
    await claimed(lab_store, f"{fresh_label}.example.test", note=MARKUP)
    (row,) = browser.page(f"{HERE}?prefix={fresh_label}").all("tr")[1:]
    assert "claimed" in row.text
    assert "nobody" in row.text


def test_holder_with_markup_is_text_and_links_to_its_own_page(
    browser: PlainBrowser, world: World, fresh_label: str
) -> None:
    client_id = f"<b>{fresh_label}</b>/?#"
    hostname = f"{fresh_label}.example.test"
    held = Ownership(world.client(hostname, clientId=client_id), hostname, "<i>&amp;</i>")
    held.publish("198.51.100.5")
    page = browser.page(f"{HERE}?prefix={fresh_label}")
    assert f"{client_id} for <i>&amp;</i>" in page.text
    assert not page.all("b")
    assert not page.all("i")
    assert client_id in browser.page(page.links[client_id]).text


async def test_hostnames_of_a_client_are_listed_newest_first(
    browser: PlainBrowser, world: World, lab_store: Store, fresh_label: str
) -> None:
    client = world.client(f"*.{fresh_label}.example.test")
    client_id = ClientId(client.call(CONTEXT)["context"]["clientId"])
    names = [f"h{number}.{fresh_label}.example.test" for number in range(3)]
    for name in names:
        Ownership(client, name).publish("198.51.100.5")
    # A crash may leave an entry too many.
    await HoldingsIndex(lab_store).enter(client_id, Hostname(f"x.{names[0]}"), now_ms())
    assert pages(browser, f"{HERE}?client={client_id}") == [names[::-1]]
    assert pages(browser, f"{HERE}?client={client_id}&prefix=h1") == [[names[1]]]
    assert pages(browser, f"{HERE}?client={client_id}&after={names[1]}") == [[names[0]]]
    page = browser.page(f"{HERE}?client={client_id}&after=gone.example.test", 409)
    assert "begin at the first page" in page.text


async def test_client_with_many_hostnames_is_looked_through_page_by_page(
    browser: PlainBrowser, world: World, lab_store: Store, fresh_label: str
) -> None:
    """Its index is filled by the product's own hand: calls would take minutes for 5,001."""
    client = world.client(f"*.{fresh_label}.example.test")
    client_id = ClientId(client.call(CONTEXT)["context"]["clientId"])
    first = Ownership(client, f"a.{fresh_label}.example.test")
    first.publish("198.51.100.5")
    index = HoldingsIndex(lab_store)
    names = [Hostname(f"h{number}.{fresh_label}.example.test") for number in range(5_001)]
    for start in range(0, len(names), AT_ONCE):
        some = enumerate(names[start : start + AT_ONCE], now_ms() + start)
        await asyncio.gather(*(index.enter(client_id, name, at_ms) for at_ms, name in some))
    page = browser.page(f"{HERE}?client={client_id}&prefix=a.")
    assert listed(page) == []
    assert "There is more to look through" in page.text
    assert listed(browser.page(page.links["Next page"])) == [first.hostname]


def test_hostname_that_is_not_stored_is_offered(browser: PlainBrowser, mine: Ownership) -> None:
    for spelled in (mine.hostname, mine.hostname.upper(), f"{mine.hostname}."):
        page = browser.page(f"{HERE}?prefix={spelled}")
        assert f"Nothing is stored of {mine.hostname}" in page.text
        assert page.links["see what the zone says"] == f"{HERE}/{mine.hostname}"
    mine.publish("198.51.100.5")
    for spelled in (mine.hostname, mine.hostname.upper(), f"{mine.hostname}."):
        page = browser.page(f"{HERE}?prefix={spelled}")
        assert listed(page) == [mine.hostname]
        assert "Nothing is stored" not in page.text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("prefix=%3Cb%3E", "a-z, 0-9, - and dots only"),
        ("prefix=m%C3%BCller.example", "xn--mller-kva.example"),
        ("prefix=" + "a" * 254, "253 characters"),
        ("prefix=%00", "a-z, 0-9, - and dots only"),
        ("client=a%20b", "A client's id must be"),
        ("after=%C3%A9", "begin at the first"),
    ],
)
def test_what_means_nothing_is_told_in_a_sentence(
    browser: PlainBrowser, query: str, words: str
) -> None:
    page = browser.page(f"{HERE}?{query}", 400)
    assert words in page.all("p", class_="fault")[0].text
    assert not page.all("b")
    assert not page.all("table")


def test_nothing_that_fits_is_told(browser: PlainBrowser, fresh_label: str) -> None:
    assert (
        "No hostname is stored that begins so" in browser.page(f"{HERE}?prefix={fresh_label}").text
    )


def test_document_that_cannot_be_read_is_a_line(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    for field in ("claim", "holder"):
        plant(page_lab, mine.hostname, field, MARKUP if field == "holder" else "[]")
        (row,) = browser.page(f"{HERE}?prefix={mine.hostname}").all("tr")[1:]
        assert "not readable by this release" in row.text


async def test_document_with_markup_in_its_name_is_text(
    browser: PlainBrowser, lab_store: Store, page_lab: Lab
) -> None:
    """No call can make one: it is put into Redis by whoever may write there."""
    name = Hostname("<b>window.bad=1<b>")
    await claimed(lab_store, name)
    last = browser.page(HERE)
    while name not in listed(last):
        last = browser.page(last.links["Next page"])
    assert not last.all("b")
    assert "has the character" in browser.page(last.links[name], 404).text
    await Documents(lab_store).change(name, lambda _: Change({"claim": None}))


async def test_name_whose_document_is_gone_is_left_out_from_then_on(
    browser: PlainBrowser, lab_store: Store, fresh_label: str
) -> None:
    name = Hostname(f"{fresh_label}.example.test")
    await claimed(lab_store, name)
    await lab_store.answers_of_each([(host_key(name), [("DEL", host_key(name))])])
    assert listed(browser.page(f"{HERE}?prefix={fresh_label}")) == []
    assert (await NameIndex(lab_store).page(fresh_label, None, 5)).names == []
    assert await lab_store.members(names_key(bucket_of(name))) is not None


async def test_hostnames_in_a_state_are_those_that_the_census_has_listed(
    browser: PlainBrowser, page_lab: Lab, mine: Ownership
) -> None:
    mine.publish("198.51.100.41")
    fail(page_lab, mine.hostname, "no luck")
    count_anew(page_lab)
    assert mine.hostname in listed(browser.page(f"{HERE}?state=failed"))
    assert listed(browser.page(f"{HERE}?state=failed&prefix={mine.hostname}")) == [mine.hostname]
    assert mine.hostname not in listed(browser.page(f"{HERE}?state=waiting"))
    of_nobody = browser.page(f"{HERE}?state=failed&client=nobody-at-all")
    assert listed(of_nobody) == []
    assert "There is no client nobody-at-all." in of_nobody.text


async def fifty_three_claimed(store: Store, label: str) -> list[str]:
    """Three more claims than a page has; their hostnames in order."""
    names = [f"{label}-{number:02}.example.test" for number in range(53)]
    await claimed(store, *names)
    for name in names:
        await store.add_to_set("gw:claims", name)
    return names


async def test_claimed_hostnames_are_listed_fifty_a_page(
    browser: PlainBrowser, page_lab: Lab, lab_store: Store, fresh_label: str
) -> None:
    names = await fifty_three_claimed(lab_store, fresh_label)
    found = pages(browser, f"{HERE}?state=claimed&prefix={fresh_label}")
    assert [len(each) for each in found] == [50, 3]
    assert [name for page in found for name in page] == names


async def test_list_of_claims_goes_on_though_its_last_one_was_taken_back(
    browser: PlainBrowser, page_lab: Lab, lab_store: Store, fresh_label: str
) -> None:
    names = await fifty_three_claimed(lab_store, fresh_label)
    first = browser.page(f"{HERE}?state=claimed&prefix={fresh_label}")
    assert browser.submit(f"{HERE}/{names[49]}/unclaim").status_code == 303
    assert listed(browser.page(first.links["Next page"])) == names[50:]


async def test_hostnames_in_a_state_are_one_page_of_which_a_clients_are_some(
    browser: PlainBrowser, page_lab: Lab, lab_store: Store, mine: Ownership, fresh_label: str
) -> None:
    """The census lists 100 at most; where one begins moves with each that is mended."""
    mine.publish("198.51.100.42")
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    names = [f"{fresh_label}-{number:02}.example.test" for number in range(52)]
    await claimed(lab_store, *names)
    try:
        for name in names:
            fail(page_lab, name, "no luck", begun_at_ms=1)
        fail(page_lab, mine.hostname, "no luck")
        count_anew(page_lab)
        page = browser.page(f"{HERE}?state=failed")
        assert set(listed(page)) >= {*names, mine.hostname}
        assert "Next page" not in page.links
        of_client = browser.page(f"{HERE}?state=failed&client={client_id}")
        assert listed(of_client) == [mine.hostname]
    finally:
        for name in names:
            await Documents(lab_store).change(
                Hostname(name), lambda _: Change({"claim": None, "issuance": None})
            )
        count_anew(page_lab)


async def test_list_goes_on_behind_what_is_no_hostname(
    browser: PlainBrowser, lab_store: Store, fresh_label: str
) -> None:
    names = [f"{fresh_label}-{number:02}.example.test" for number in range(49)]
    odd, last = f"{fresh_label}-x_a", f"{fresh_label}-z.example.test"
    await claimed(lab_store, *names, odd, last)
    assert pages(browser, f"{HERE}?prefix={fresh_label}") == [[*names, odd], [last]]
    await Documents(lab_store).change(Hostname(odd), lambda _: Change({"claim": None}))


def test_state_that_there_is_not_is_refused(browser: PlainBrowser) -> None:
    page = browser.page(f"{HERE}?state=lost", status=400)
    assert "There is no such state" in page.text


async def test_hostname_that_is_written_out_is_found_wherever_it_stands_in_a_clients_index(
    browser: PlainBrowser, lab_store: Store, mine: Ownership, fresh_label: str
) -> None:
    """Behind more of them than are looked through at once, which are as one that was just left."""
    mine.publish("198.51.100.5")
    client_id = ClientId(mine.caller.call(CONTEXT)["context"]["clientId"])
    index = HoldingsIndex(lab_store)
    names = [Hostname(f"{fresh_label}-{number}.example.test") for number in range(SCANNED)]
    later_ms = now_ms() + 1_000
    for start in range(0, SCANNED, AT_ONCE):
        some = names[start : start + AT_ONCE]
        await asyncio.gather(*(index.enter(client_id, name, later_ms) for name in some))
    for written in (mine.hostname, f"{mine.hostname}."):
        page = browser.page(f"{HERE}?prefix={written}&client={client_id}")
        assert listed(page) == [mine.hostname]
        assert "Nothing is stored" not in page.text
    assert mine.hostname not in listed(browser.page(page.links["Next page"]))
    page = browser.page(f"{HERE}?prefix=zz&client={client_id}")
    assert "None of the 5,000 hostnames of this client that were looked at begins so." in page.text
    page = browser.page(f"{HERE}?prefix=no.example.test&client={client_id}")
    assert "Nothing is stored of no.example.test for this client" in page.text

"""What every page has in common: headers, bounds, forms that prove where they come from, faults."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from gateway.contract import Overloaded, RequestInvalid
from gateway.contract.names import Hostname
from gateway.http.crowd import CrowdLimits
from gateway.http.page.frame import Fields, Page, PageFault, Shown, Visit
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Contended, Unreadable
from tests.integration.page.browsing import Html
from tests.integration.page.framed import (
    FORM,
    HOST,
    Clock,
    Framed,
    a_failing_page,
    a_hanging_page,
    a_page,
)

POLICY = {
    "default-src 'none'",
    *(f"{kind} 'self'" for kind in ("style-src", "script-src", "img-src", "connect-src")),
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
}
CROSS_SITE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": f"http://{HOST}:8080"},
    {"Origin": f"http://{HOST}.evil.example"},
    {"Sec-Fetch-Site": "cross-site", "Origin": f"http://{HOST}"},
    {"Sec-Fetch-Site": "same-site", "Origin": f"http://{HOST}"},
    {"Sec-Fetch-Site": "none"},
    {},
]


@pytest.fixture
async def framed(store: Store) -> AsyncIterator[Framed]:
    framed = Framed(store, Clock())
    await framed.log_in()
    yield framed
    await framed.client.aclose()


async def with_pages(framed: Framed, *pages: Page, bound_seconds: float = 5.0) -> Framed:
    """The same session at a process with these pages besides the plain one."""
    other = Framed(
        framed.store,
        framed.clock,
        [a_page(), *pages],
        admin_token=framed.admin_token,
        bound_seconds=bound_seconds,
    )
    other.client.cookies = framed.client.cookies
    return other


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/operator/plain", 200),
        ("HEAD", "/operator/plain", 200),
        ("GET", "/operator/", 303),
        ("GET", "/operator/login", 200),
        ("GET", "/operator/logout", 303),
        ("GET", "/operator/static/page.css", 200),
        ("GET", "/operator/static/page.js", 200),
        ("GET", "/operator/static/icon.svg", 200),
        ("POST", "/operator/static/page.css", 405),
        ("GET", "/operator/static/nothing.css", 404),
        ("GET", "/operator/nothing/at/all", 404),
        ("PUT", "/operator/plain", 405),
        ("OPTIONS", "/operator/login", 405),
        ("POST", "/operator/plain", 403),
        ("POST", "/operator/login", 403),
        ("GET", "/operator/failing", 500),
    ],
)
async def test_every_response_tells_the_browser_what_to_allow(
    framed: Framed, method: str, path: str, status: int
) -> None:
    broken = await with_pages(framed, a_failing_page(ZeroDivisionError("secret words")))
    answer = await broken.client.request(method, path)
    assert answer.status_code == status
    assert set(answer.headers["content-security-policy"].split("; ")) == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "x-request-id" in answer.headers
    assert "strict-transport-security" not in answer.headers
    assert "secret words" not in answer.text


async def test_browser_is_told_to_keep_to_tls_where_the_listener_has_it(store: Store) -> None:
    framed = Framed(store, Clock(), scheme="https")
    for path in ("/operator/login", "/operator/plain", "/operator/static/page.js"):
        headers = (await framed.get(path)).headers
        assert headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize("headers", CROSS_SITE)
@pytest.mark.parametrize("path", ["/operator/plain", "/operator/login", "/operator/logout"])
async def test_form_from_another_site_is_refused(
    framed: Framed, path: str, headers: dict[str, str]
) -> None:
    fields = {**await framed.keys(), "token": framed.admin_token}
    framed.client.headers["Content-Type"] = FORM
    answer = await framed.post(path, fields, origin="", **headers)
    assert answer.status_code == 403
    assert "from another site" in answer.text
    assert "set-cookie" not in answer.headers
    assert await framed.is_logged_in()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": f"http://{HOST}"},
        {"Origin": f"https://{HOST}"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
    ],
    ids=["same", "tls-in-front", "told-by-the-browser"],
)
async def test_form_from_this_site_is_taken(framed: Framed, headers: dict[str, str]) -> None:
    answer = await framed.post("/operator/plain", await framed.keys(), origin="", **headers)
    assert answer.status_code == 303


async def test_plain_http_is_another_site_where_the_listener_has_tls(store: Store) -> None:
    framed = Framed(store, Clock(), scheme="https")
    assert (await framed.log_in()).status_code == 303
    answer = await framed.post("/operator/plain", await framed.keys(), f"http://{HOST}")
    assert answer.status_code == 403


@pytest.mark.parametrize("csrf", [None, "", "x", "é", "0" * 64])
async def test_form_that_is_not_this_sessions_own_is_refused(
    framed: Framed, csrf: str | None
) -> None:
    fields = await framed.keys()
    fields = {"form": fields["form"]} if csrf is None else {**fields, "csrf": csrf}
    answer = await framed.post("/operator/plain", fields)
    assert answer.status_code == 403
    assert "open the page again" in Html(answer.text).text


async def test_form_of_another_session_is_refused(framed: Framed) -> None:
    other = await with_pages(framed)
    other.client.cookies.clear()
    await other.log_in()
    answer = await framed.post("/operator/plain", await other.keys())
    assert answer.status_code == 403
    assert (
        await other.post("/operator/logout", await framed.keys("/operator/logout"))
    ).status_code == 403
    assert await other.is_logged_in()


async def test_form_of_another_page_of_the_session_is_refused(framed: Framed) -> None:
    other = await with_pages(framed, a_page("/grave"))
    for path, own in (("/operator/grave", "/operator/plain"), ("/operator/logout",) * 2):
        keys = await other.keys(own)
        elsewhere = "/operator/plain" if path == own else path
        assert (await other.post(elsewhere, keys)).status_code == 403
        assert (await other.post(own, keys)).status_code == 303


async def test_form_that_is_sent_twice_is_done_once(framed: Framed) -> None:
    done = []

    async def act(visit: Visit, form: Fields) -> Shown:
        done.append((visit.remote, form.text("name")))
        return Shown({"fault": PageFault(200, "done"), "again": None})

    other = await with_pages(framed, Page("/form", "error.html", a_page().show, act))
    fields = {**await other.keys("/operator/form"), "name": " value "}
    assert (await other.post("/operator/form", fields)).status_code == 200
    again = await other.post("/operator/form", fields)
    assert (again.status_code, done) == (409, [("127.0.0.1", "value")])
    assert "sent already" in again.text


async def test_form_without_an_id_of_its_own_is_refused(framed: Framed) -> None:
    for form in ("", "x", "*" * 22, "A" * 23):
        fields = {**await framed.keys(), "form": form}
        assert (await framed.post("/operator/plain", fields)).status_code == 409


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"a=" + b"x" * 65_536, FORM, 413),
        (b"&".join([b"a=b"] * 101), FORM, 400),
        (b"a=%FF", FORM, 400),
        (b"a=\xff", FORM, 400),
        (b'{"a": "b"}', "application/json", 415),
        (b"a=b", "text/plain", 415),
    ],
)
async def test_what_is_no_form_within_bounds_is_refused(
    framed: Framed, body: bytes, kind: str, status: int
) -> None:
    headers = {"Content-Type": kind, "Origin": f"http://{HOST}"}
    for path in ("/operator/plain", "/operator/login"):
        answer = await framed.client.post(path, content=body, headers=headers)
        assert answer.status_code == status
        assert answer.headers.get("connection") == ("close" if status == 413 else None)


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (StoreUnavailable("Redis cannot be reached"), 503, "Redis cannot be reached: nothing can"),
        (Contended(), 409, "Others changed it at the same time: do it again."),
        (Unreadable(Hostname("a.example")), 500, "a.example is not readable by this release."),
        (Overloaded(1_500), 503, ""),
        (RequestInvalid(["hostname: is none"]), 422, "hostname: is none"),
        (PageFault(404, "There is no such thing."), 404, "There is no such thing."),
        (ZeroDivisionError("secret words"), 500, "The gateway has failed to make this page"),
    ],
)
async def test_fault_of_a_page_is_a_page_that_says_so(
    framed: Framed, error: Exception, status: int, sentence: str
) -> None:
    answer = await (await with_pages(framed, a_failing_page(error))).get("/operator/failing")
    page = Html(answer.text)
    assert answer.status_code == status
    assert sentence in page.text
    assert page.links["Hostnames"] == "/operator/hostnames"
    assert ("retry-after" in answer.headers) == (status in {503} or isinstance(error, Contended))


async def test_page_that_hangs_is_given_up(framed: Framed) -> None:
    hanging = await with_pages(framed, a_hanging_page(), bound_seconds=0.05)
    answer = await hanging.get("/operator/hanging")
    assert answer.status_code == 503
    assert "It took too long" in answer.text


async def test_session_has_as_many_requests_at_once_as_a_credential(store: Store) -> None:
    begun = asyncio.Event()
    pages = [a_page(), a_hanging_page(begun)]
    framed = Framed(store, Clock(), pages, crowd=CrowdLimits(all=0, each=1))
    await framed.log_in()
    hanging = asyncio.create_task(framed.get("/operator/hanging"))
    await begun.wait()
    answer = await framed.get()
    hanging.cancel()
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


async def test_notice_of_a_redirect_is_told_once_as_text(framed: Framed) -> None:
    fields = {**await framed.keys(), "told": "<b>done</b> for a.example"}
    answer = await framed.post("/operator/plain", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator/plain")
    assert "<b>done" not in (await framed.get(**{"X-Page-Poll": "1"})).text
    page = await framed.get()
    assert "&lt;b&gt;done&lt;/b&gt; for a.example" in page.text
    assert "done" not in (await framed.get()).text


async def test_values_in_a_page_are_text_whatever_they_hold(framed: Framed) -> None:
    sentence = "<script>alert(1)</script>\x1b[31m\u202e'\""
    page = await with_pages(framed, a_page("/hostile", sentence))
    shown = (await page.get("/operator/hostile")).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\u202e&#39;&#34;" in shown


async def test_query_that_cannot_be_read_is_refused_in_words(framed: Framed) -> None:
    assert (await framed.get("/operator/plain?a=%FF")).status_code == 400
    assert (await framed.get("/operator/plain?" + "a=b&" * 101)).status_code == 400


async def test_log_has_a_line_for_each_page_and_nothing_of_its_query(framed: Framed) -> None:
    with capture_logs() as lines:
        await framed.get("/operator/plain?token=gwa_secret")
    assert [line["event"] for line in lines].count("page answered") == 1
    assert "gwa_secret" not in str(lines)


async def test_log_has_nothing_of_what_a_path_asks_for(framed: Framed) -> None:
    token = f"gwa_{'x' * 43}"

    async def show(visit: Visit) -> Shown:
        raise PageFault(404, f"There is no {visit.params['what']}.")

    other = await with_pages(framed, Page("/named/{what}", "error.html", show))
    with capture_logs() as lines:
        assert token in (await other.get(f"/operator/named/{token}")).text
    assert "PageFault" in str(lines)
    assert token not in str(lines)


async def test_form_that_says_it_is_a_poll_is_logged_all_the_same(framed: Framed) -> None:
    fields = await framed.keys()
    with capture_logs() as lines:
        await framed.post("/operator/plain", fields, **{"X-Page-Poll": "1"})
    (line,) = [each for each in lines if each["event"] == "page answered"]
    assert (line["log_level"], line["method"]) == ("info", "POST")


async def test_page_that_is_not_available_can_be_asked_for_again(framed: Framed) -> None:
    other = await with_pages(framed, a_failing_page(StoreUnavailable("Redis is away")))
    page = Html((await other.get("/operator/failing?a=%26&b")).text)
    assert page.links["Try again"] == "/operator/failing?a=%26&b"
    assert "Try again" not in Html((await other.get("/operator/none")).text).links


async def test_fault_that_is_told_before_the_session_is_known_leads_to_the_pages(
    framed: Framed,
) -> None:
    crossed = await framed.post("/operator/plain", {}, origin="https://evil.example")
    for answer in (await framed.get("/operator/none"), crossed):
        links = Html(answer.text).links
        assert (
            links.items()
            >= {"Hostnames": "/operator/hostnames", "Clients": "/operator/clients"}.items()
        )
        assert links["To the overview"] == "/operator"
    assert "Hostnames" not in Html((await framed.get("/operator/login")).text).links

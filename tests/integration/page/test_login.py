"""Logging in to the page and out of it, at real gateways."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.integration.page.browsing import PLAIN_COOKIE, SECURE_COOKIE, Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.page.making import NEW
from tests.integration.service.calling import World
from tests.integration.service.trailing import Entry, trail
from tests.lab.gateway import GatewayProcess, running_gateway
from tests.lab.lab import Lab
from tests.lab.ports import free_port
from tests.lab.process import wait_until

BEHIND = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"}

Start = Callable[..., GatewayProcess]


@pytest.fixture
def start(page_lab: Lab) -> Iterator[Start]:
    """Start one more gateway of the lab under some variables."""
    with ExitStack() as stack:

        def start(**environ: str) -> GatewayProcess:
            name, port = f"gateway-{secrets.token_hex(4)}", free_port()
            own = {f"GATEWAY_{key}": value for key, value in environ.items()}
            gateway = running_gateway(page_lab.config, name, port=port, environ=own)
            return stack.enter_context(gateway)

        yield start


def wrong_token() -> str:
    return f"gwa_{secrets.token_urlsafe(32)}"


def entries(lab: Lab, what: str, name: str | None = None) -> list[Entry]:
    """What the audit trail has of an action by the actor of this name, once it has anything."""
    found: list[Entry] = []

    def are_there() -> bool:
        found[:] = [each for each in trail(lab) if (each["what"], each.get("name")) == (what, name)]
        return bool(found)

    wait_until(are_there, f"the audit trail has {what}")
    return found


def test_page_is_shown_to_whoever_logged_in(page_lab: Lab, stranger: PlainBrowser) -> None:
    answer = stranger.get("/operator")
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator/login")
    stranger.log_in(page_lab.config.admin_token)
    page = stranger.page("/operator")
    assert page.all("h1")[0].text == "Overview"
    assert "admin, from 127.0.0.1, since" in page.text


def test_cookie_is_kept_from_scripts_and_other_sites(page_lab: Lab, stranger: PlainBrowser) -> None:
    token = page_lab.config.admin_token
    answer = stranger.submit("/operator/login", token=token)
    told = answer.headers.get_list("set-cookie")[-1]
    value, *attributes = told.split("; ")
    assert value.startswith(f"{PLAIN_COOKIE}=")
    assert sorted(attributes) == ["HttpOnly", "Path=/operator", "SameSite=Strict"]


def test_cookie_is_bound_to_tls_where_a_trusted_proxy_has_it(
    page_lab: Lab, start: Start, browse: Browse
) -> None:
    gateway = start(HTTP__TRUSTED_PROXIES='["127.0.0.1"]', PAGE__ENABLED="true")
    browser = browse(gateway.base_url)
    host = gateway.base_url.partition("//")[2]
    fields = {"token": page_lab.config.admin_token}
    browser.origin = f"http://{host}"
    assert browser.post("/operator/login", fields, **BEHIND).status_code == 403
    browser.origin = f"https://{host}"
    told = browser.post("/operator/login", fields, **BEHIND).headers["set-cookie"]
    value, *attributes = told.split("; ")
    assert value.startswith(f"{SECURE_COOKIE}=")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"]
    shown = browser.get("/operator", Cookie=value, **BEHIND)
    assert "admin, from 192.0.2.7" in Html(shown.text).text
    # A cookie that was planted without TLS is none over TLS.
    planted = value.removeprefix("__Host-")
    assert browser.get("/operator", Cookie=planted, **BEHIND).status_code == 303


def test_what_others_say_of_tls_is_ignored(page_lab: Lab, stranger: PlainBrowser) -> None:
    fields = {"token": page_lab.config.admin_token}
    told = stranger.post("/operator/login", fields, **BEHIND).headers.get_list("set-cookie")
    assert all(each.startswith(f"{PLAIN_COOKIE}=") for each in told)


def test_wrong_token_is_refused_and_told_without_it(page_lab: Lab, stranger: PlainBrowser) -> None:
    token = wrong_token()
    answer = stranger.submit("/operator/login", token=token)
    page = Html(answer.text)
    assert answer.status_code == 403
    assert page.by_id("login-fault").text == "This is not the admin token of this gateway."
    assert "set-cookie" not in answer.headers
    refused = entries(page_lab, "page-login")[0]
    assert (refused["who"], refused["outcome"], refused["remote"]) == (
        *("visitor", "refused", "127.0.0.1"),
    )
    log = page_lab.gateways[0].process.log_file.read_text()
    assert "a wrong token was shown at the page" in log
    digest = hashlib.sha256(token.encode()).hexdigest()
    for text in (answer.text, log, *map(str, entries(page_lab, "page-login"))):
        assert token not in text
        assert digest not in text


def test_wrong_tokens_from_one_network_are_told_once_and_not_for_each_address(
    page_lab: Lab, start: Start, browse: Browse
) -> None:
    gateway = start(HTTP__TRUSTED_PROXIES='["127.0.0.1"]', PAGE__ENABLED="true")
    guesser, fields = browse(gateway.base_url), {"token": wrong_token()}
    remotes = [f"2001:db8::{number}" for number in (1, 2, 3)]
    last = "2001:db8:0:1::1"
    for remote in (*remotes, last):
        header = {"X-Forwarded-For": remote}
        assert guesser.post("/operator/login", fields, **header).status_code == 403

    def told() -> list[str]:
        return [each["remote"] for each in entries(page_lab, "page-login")]

    wait_until(lambda: last in told(), "the last one is told")
    assert [remote for remote in remotes if remote in told()] == remotes[:1]


@pytest.mark.parametrize("token", ["", "gwa_", "é" * 40, "gwa_" + "A" * 5_000, "gwc_x"])
def test_what_is_no_token_is_refused(stranger: PlainBrowser, token: str) -> None:
    assert stranger.submit("/operator/login", token=token).status_code == 403


def test_token_of_a_client_is_refused(stranger: PlainBrowser, world: World) -> None:
    token = world.ownership().caller.token
    assert token is not None
    assert stranger.submit("/operator/login", token=token).status_code == 403


def test_login_and_logout_are_in_the_audit_trail(page_lab: Lab, browser: PlainBrowser) -> None:
    cookie = browser.cookie
    assert cookie is not None
    name = f"page session {hashlib.sha256(cookie.encode()).hexdigest()[:8]}"
    browser.log_out()
    for what, outcome in (("page-login", "opened"), ("page-logout", "closed")):
        (told,) = entries(page_lab, what, name)
        assert (told["who"], told["outcome"], told["remote"]) == ("admin", outcome, "127.0.0.1")


def test_logout_ends_the_session_at_all_gateways(
    page_lab: Lab, browser: PlainBrowser, browse: Browse
) -> None:
    cookie = {"Cookie": f"{PLAIN_COOKIE}={browser.cookie}"}
    second = browse(page_lab.gateways[1].base_url)
    assert second.get("/operator", **cookie).status_code == 200
    answer = browser.log_out()
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator/login")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert browser.cookie is None
    assert second.get("/operator", **cookie).status_code == 303


def test_login_leads_to_the_page_that_was_wanted(page_lab: Lab, stranger: PlainBrowser) -> None:
    wanted = "/operator/hostnames/a%3Fb?prefix=a%26b&after="
    asked = stranger.get(wanted).headers["location"]
    answer = stranger.submit(asked, token=page_lab.config.admin_token)
    assert answer.headers["location"] == wanted


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/operator",
        "//evil.example/operator",
        "/\\evil.example",
        "/operator\\..\\..\\evil",
        "/operator/\\evil.example",
        "/operator//evil.example",
        "/operator/../typedrequest",
        "/operator/%2e%2e/typedrequest",
        "/operatorevil",
        "/operator/login",
        "/operator/login?next=/operator/login",
        "/operator/log%69n",
        "/operator/logout",
        "/typedrequest",
        "javascript:alert(1)",
        "/operator/\r\nSet-Cookie: a=b",
        "/operator/é",
        "/operator/" + "a" * 2_000,
    ],
)
def test_login_leads_nowhere_else(page_lab: Lab, stranger: PlainBrowser, elsewhere: str) -> None:
    fields = {"token": page_lab.config.admin_token, "next": elsewhere}
    answer = stranger.post("/operator/login", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator")


def test_login_says_that_a_session_has_ended(page_lab: Lab, stranger: PlainBrowser) -> None:
    assert not stranger.page("/operator/login").all("p", class_="notice")
    unknown = {"Cookie": f"{PLAIN_COOKIE}={secrets.token_urlsafe(32)}"}
    asked = stranger.get("/operator/audit?client=a", **unknown).headers["location"]
    (told,) = stranger.page(asked).all("p", class_="notice")
    assert told.text == "Your session has ended: log in to go on."
    answer = stranger.submit(asked, token=page_lab.config.admin_token)
    assert answer.headers["location"] == "/operator/audit?client=a"


def test_form_whose_session_has_ended_is_told_to_have_done_nothing(
    browser: PlainBrowser, fresh_label: str
) -> None:
    path = f"/operator/hostnames/{fresh_label}.example.test/claim"
    form = browser.page(path).form()
    browser.client.cookies.clear()
    answer = browser.send(form, path, note="mine")
    assert answer.status_code == 303
    page = browser.page(answer.headers["location"])
    (told,) = page.all("p", class_="notice")
    assert "nothing was done with the form you sent: log in, and send it again" in told.text
    assert dict(page.form().fields)["next"] == path


def test_policy_that_was_typed_is_kept_through_a_login(
    page_lab: Lab, browser: PlainBrowser, fresh_label: str
) -> None:
    typed = {
        "client_id": fresh_label,
        "client_type": '"><b>',
        "patterns": f"{fresh_label}.example.test\nwww.{fresh_label}.example.test",
        "prefixes": "198.51.100.0/24",
        "capabilities": ["readCertificates", "syncDnsRecords"],
    }
    form = browser.page(NEW).form()
    browser.client.cookies.clear()
    answer = browser.send(form, NEW, **typed, step="do")
    assert answer.status_code == 403
    wrong = browser.send(Html(answer.text).form(), NEW, token=wrong_token())
    for asked in (answer, wrong):
        assert not Html(asked.text).all("b")
        assert "What you typed is kept" in Html(asked.text).all("p", class_="notice")[0].text
    token = page_lab.config.admin_token
    logged_in = Html(browser.send(Html(wrong.text).form(), NEW, token=token).text)
    assert "Nothing was done" in logged_in.text
    assert token not in logged_in.source
    shown = Html(browser.send(logged_in.form(), NEW).text)
    assert shown.all("h1")[0].text == "New client"
    kept = [(name, text) for name, text in shown.form().fields if name in typed]
    wanted = [(name, text) for name, text in typed.items() if name != "capabilities"]
    assert kept == [
        *wanted,
        ("capabilities", "syncDnsRecords"),
        ("capabilities", "readCertificates"),
    ]
    browser.page(f"/operator/clients/{fresh_label}", 404)
    review = browser.send(shown.form(), NEW, client_type="relay")
    assert browser.send(Html(review.text).form(), NEW, step="do").status_code == 200


def test_form_from_another_site_is_not_taken_along(browser: PlainBrowser, fresh_label: str) -> None:
    browser.client.cookies.clear()
    browser.origin = "https://evil.example"
    assert browser.post(NEW, {"client_id": fresh_label}).status_code == 403
    assert fresh_label not in browser.post(NEW, {"client_id": fresh_label}).text


def test_whoever_guesses_is_shut_out_and_a_known_session_is_not(
    page_lab: Lab, start: Start, browse: Browse
) -> None:
    gateway = start(LIMITS__UNAUTHENTICATED_PER_MINUTE="2")
    good, guesser = browse(gateway.base_url), browse(gateway.base_url)
    good.log_in(page_lab.config.admin_token)
    for _ in range(2):
        assert guesser.submit("/operator/login", token=wrong_token()).status_code == 403
    shut_out = guesser.submit("/operator/login", token=wrong_token())
    assert shut_out.status_code == 503
    assert int(shut_out.headers["retry-after"]) > 0
    assert good.get("/operator").status_code == 200
    # The right token was right lately; a session that nobody knows was not.
    guesser.log_in(page_lab.config.admin_token)
    unknown = {"Cookie": f"{PLAIN_COOKIE}={'A' * 43}"}
    stranger = browse(gateway.base_url)
    assert stranger.get("/operator", **unknown).status_code == 503


def test_unknown_sessions_are_counted_as_refused_calls_are(start: Start, browse: Browse) -> None:
    guesser = browse(start(LIMITS__UNAUTHENTICATED_PER_MINUTE="2").base_url)
    seen = []
    for _ in range(3):
        cookie = f"{PLAIN_COOKIE}={secrets.token_urlsafe(32)}"
        seen.append(guesser.get("/operator", Cookie=cookie).status_code)
    assert seen == [303, 303, 503]
    assert guesser.submit("/operator/login", token=wrong_token()).status_code == 503


def test_unknown_sessions_are_counted_at_the_logout_too(start: Start, browse: Browse) -> None:
    guesser = browse(start(LIMITS__UNAUTHENTICATED_PER_MINUTE="2").base_url)
    seen = []
    for _ in range(3):
        cookie = f"{PLAIN_COOKIE}={secrets.token_urlsafe(32)}"
        seen.append(guesser.post("/operator/logout", {}, Cookie=cookie).status_code)
    assert seen == [303, 303, 503]


def test_no_page_may_be_stored_and_each_has_a_request_id(browser: PlainBrowser) -> None:
    for path in ("/operator", "/operator/login", "/operator/static/page.css", "/operator/none"):
        headers = browser.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert len(headers["x-request-id"]) == 16


def test_head_is_answered_as_get_is_without_a_body(browser: PlainBrowser) -> None:
    got, asked = browser.get("/operator/login"), browser.client.head("/operator/login")
    assert asked.status_code == 200
    assert asked.content == b""
    assert asked.headers["content-length"] == str(len(got.content))

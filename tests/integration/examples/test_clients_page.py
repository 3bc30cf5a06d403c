"""What `docs/clients.md` shows is what happens: its HTTP to the byte, its Python, its links."""

import re
from typing import Any

import pytest

from tests.integration.examples.page import (
    ADMIN_TOKEN,
    CLUSTER,
    PAGE_FILE,
    ZONE,
    Exchange,
    Message,
    exchanges,
    play,
)
from tests.lab.lab import Lab

PAGE = PAGE_FILE.read_text(encoding="utf-8")
SHOWN = exchanges()
NUMBERED = range(len(SHOWN))
METHODS = {
    "getGatewayCapabilities",
    "getGatewayClientContext",
    "getGatewayClientCertificate",
    "provisionGatewayClientCredential",
    "releaseGatewayClientCertificate",
    "syncGatewayClientDnsRecord",
}


@pytest.fixture(scope="module")
def answers(lab: Lab) -> list[Message]:
    """All answers of the gateway to the page's requests, on one connection, in the page's order."""
    return list(play(lab, "t0page", SHOWN))


# --- the exchanges ------------------------------------------------------------------------------


def test_every_method_is_shown() -> None:
    shown = {re.findall(r'"method":"(\w+)"', each.request.body)[0] for each in SHOWN}
    assert shown == METHODS


@pytest.mark.parametrize("number", NUMBERED)
def test_first_line_and_headers_are_as_shown(answers: list[Message], number: int) -> None:
    shown, answered = SHOWN[number].answer.settled(), answers[number].settled()
    assert answered.first_line == shown.first_line
    assert answered.headers == shown.headers


@pytest.mark.parametrize("number", NUMBERED)
def test_body_is_as_shown(answers: list[Message], number: int) -> None:
    assert answers[number].settled().body == SHOWN[number].answer.settled().body


@pytest.mark.parametrize("number", NUMBERED)
def test_lengths_of_the_page_are_those_of_its_bodies(number: int) -> None:
    exchange = SHOWN[number]
    for message in (exchange.request, exchange.answer):
        assert message.header("content-length") == str(len(message.body.encode()))


def test_operator_is_the_only_one_who_provisions() -> None:
    def is_by_the_operator(exchange: Exchange) -> bool:
        return ADMIN_TOKEN in exchange.request.body

    provisioning = ["provision" in each.request.body for each in SHOWN]
    assert [is_by_the_operator(each) for each in SHOWN] == provisioning


# --- the Python ---------------------------------------------------------------------------------


def test_python_of_the_page_runs(
    lab: Lab, fresh_label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its blocks in the order in which a program could have them: the client is made first."""
    by_name = {
        "https://gateway.example.com": lab.config.url,
        CLUSTER: fresh_label,
        ZONE: lab.bind.zones[0],
    }
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (provisioning,) = [block for block in blocks if "operator_token" in block]
    names: dict[str, Any] = {"operator_token": lab.config.admin_token}
    for block in [provisioning, *(block for block in blocks if block is not provisioning)]:
        code = block
        for of_the_page, of_the_lab in by_name.items():
            code = code.replace(of_the_page, of_the_lab)
        exec(compile(code, PAGE_FILE.name, "exec"), names)  # noqa: S102  (the page's own)
        names.setdefault("token", getattr(names.get("made"), "api_token", None))
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(f"relay.{fresh_label}.example.test until 1")
    assert printed[1].startswith("ask again at 1")


# --- the links ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["clients.md", "agent.md", "command-line.md"])
def test_links_lead_to_files_and_headings_that_are_there(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", (PAGE_FILE.parent / page).read_text("utf-8")):
        name, _, anchor = target.partition("#")
        file = (PAGE_FILE.parent / name) if name else PAGE_FILE.parent / page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {_anchor(heading) for heading in headings}, target


def _anchor(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
